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

# The proxies that feeds are put behind: Debian's, unpacked beside the build, so that no service is started. HAProxy's
# libraries come with it.
install_proxies() {
  local packages=(nginx haproxy liblua5.3-0 libopentracing-c-wrapper0 libopentracing1)
  local target=${CARGO_TARGET_DIR:-target} folder
  [[ -x $target/proxies/usr/sbin/nginx && -x $target/proxies/usr/sbin/haproxy ]] && return
  apt-get update -q
  folder=$(mktemp -d)
  (cd "$folder" && apt-get download -q "${packages[@]}")
  rm -rf "$target/proxies.new" && mkdir -p "$target/proxies.new"
  local package
  for package in "$folder"/*.deb; do
    dpkg-deb -x "$package" "$target/proxies.new"
  done
  rm -rf "$folder" "$target/proxies" && mv "$target/proxies.new" "$target/proxies"
}

# LMDB is compiled from C and Rust links with cc; libFuzzer is C++; every other dependency comes from cargo or npm.
install_compiler() {
  local command=$1 package=$2
  command -v "$command" >/dev/null && return
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$package" libc6-dev
}

# The dashboard's tests drive Debian's Chromium.
install_browser() {
  command -v chromium >/dev/null && return
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends chromium
}

# Debian's Prometheus, unpacked below the target folder: installing it would start a service.
install_prometheus() {
  local home=${CARGO_TARGET_DIR:-target}/prometheus packages
  [[ -x $home/usr/bin/prometheus && -x $home/usr/bin/promtool ]] && return
  packages=$(mktemp -d)
  apt-get update -q
  (cd "$packages" && apt-get download -q prometheus)
  mkdir -p "$home"
  dpkg-deb -x "$packages"/prometheus_*.deb "$home"
  rm -r "$packages"
}
