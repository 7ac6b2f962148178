# Sourced by tests/run and tests/nightly: stages with their names and times, and the tools they need.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

current=start

stage() {
  current=$1
  shift
  local begun=$SECONDS
  echo "== $current: $*"
  "$@"
  echo "== $current: done in $((SECONDS - begun)) s"
}

need() {
  local what=$1
  shift
  "$@" >/dev/null 2>&1 || {
    echo "missing: $what" >&2
    return 1
  }
}

# Installs packages of Debian's.
install() {
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@"
}

# Unpacks packages of Debian's into a folder beside the build, where they are not installed: that would start a service.
unpack() {
  local home=$1 packages
  shift
  packages=$(mktemp -d)
  apt-get update -q
  (cd "$packages" && apt-get download -q "$@")
  rm -rf "$home.new" && mkdir -p "$home.new"
  local package
  for package in "$packages"/*.deb; do
    dpkg-deb -x "$package" "$home.new"
  done
  rm -rf "$packages" "$home" && mv "$home.new" "$home"
}

# LMDB is compiled from C and Rust links with cc; libFuzzer is C++; every other dependency comes from cargo or npm.
install_compiler() {
  local command=$1 package=$2
  command -v "$command" >/dev/null || install "$package" libc6-dev
}

# The dashboard's tests drive Debian's Chromium, as it is without windows: it opens a page in half the time.
install_browser() {
  command -v chromium-headless-shell >/dev/null || install chromium-headless-shell
}

# The proxies that feeds are put behind. HAProxy's libraries come with it.
install_proxies() {
  local home=${CARGO_TARGET_DIR:-target}/proxies
  [[ -x $home/usr/sbin/nginx && -x $home/usr/sbin/haproxy ]] ||
    unpack "$home" nginx haproxy liblua5.3-0 libopentracing-c-wrapper0 libopentracing1
}

install_prometheus() {
  local home=${CARGO_TARGET_DIR:-target}/prometheus
  [[ -x $home/usr/bin/prometheus && -x $home/usr/bin/promtool ]] || unpack "$home" prometheus
}
