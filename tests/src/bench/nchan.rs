//! The peer that feeds without a disk are held against: nginx with the module Nchan, as Debian has them. It keeps
//! messages in memory and loses them with its process.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use seqtide_bench::service::{FeedRequest, Publish, Service, Transport};

use super::peer::{self, Peer};

/// Debian's packages.
const PACKAGES: [&str; 2] = ["nginx", "libnginx-mod-nchan"];
const PROGRAM: &str = "usr/sbin/nginx";
const MODULE: &str = "usr/lib/nginx/modules/ngx_nchan_module.so";
/// With the module nginx wants this folder of Debian's, whatever its configuration says of temporary files.
const STATE: &str = "/var/lib/nginx";

/// Starts one process with one channel, whose last messages are kept for those who are behind.
///
/// # Panics
/// When it cannot be installed or does not listen.
pub fn start(transport: Transport) -> Peer {
    let root = installed();
    let (address, folder) = (peer::free_address(), peer::folder("nchan"));
    let file = folder.path().join("nginx.conf");
    fs::write(&file, configuration(&root, folder.path(), address.port())).expect("a configuration");
    let mut command = Command::new(root.join(PROGRAM));
    command.arg("-p").arg(folder.path()).arg("-e").arg("stderr").arg("-c").arg(&file);
    let live: &[u8] = if transport == Transport::Sse { b": hi" } else { b"" };
    let feed = FeedRequest { bytes: transport.request("/subscribe"), live, has_sequences: false };
    let publish = Publish::Post { path: "/publish".to_owned(), content_type: "text/plain" };
    Peer::start("nchan", command, Service { address, pid: None, publish, feed }, folder)
}

/// One process: with a second one a message crosses between them, and here the client has the other core.
fn configuration(root: &Path, folder: &Path, port: u16) -> String {
    let (module, folder) = (root.join(MODULE), folder.display());
    format!(
        "load_module {};
daemon off;
master_process off;
pid {folder}/pid;
worker_rlimit_nofile 65536;
events {{ worker_connections 16384; }}
http {{
  access_log off;
  keepalive_requests 1000000000;
  nchan_shared_memory_size 512M;
  server {{
    listen 127.0.0.1:{port};
    location = /publish {{
      nchan_publisher;
      nchan_channel_id bench;
      nchan_message_buffer_length 100000;
      nchan_message_timeout 30s;
    }}
    location = /subscribe {{
      nchan_subscriber;
      nchan_channel_id bench;
      nchan_subscriber_first_message newest;
    }}
  }}
}}
",
        module.display()
    )
}

/// The folder that has what Debian's packages bring, which are loaded down and unpacked unless they are there: no
/// service is started, as installing them would.
fn installed() -> PathBuf {
    let root = peer::home("nchan");
    if !root.join(MODULE).is_file() || !root.join(PROGRAM).is_file() {
        let packages = peer::folder("nchan-packages");
        peer::install(Command::new("apt-get").args(["update", "-q"]));
        peer::install(Command::new("apt-get").args(["download", "-q"]).args(PACKAGES).current_dir(packages.path()));
        for package in fs::read_dir(packages.path()).expect("the packages") {
            let package = package.expect("a package").path();
            peer::install(Command::new("dpkg-deb").arg("-x").arg(package).arg(&root));
        }
    }
    let made = fs::create_dir_all(STATE);
    made.unwrap_or_else(|error| panic!("nginx with Nchan needs the folder {STATE}, which cannot be made: {error}"));
    root
}
