//! Proxies in front of a server: Debian's nginx and HAProxy, each with as little configuration as it gets by with.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::bench::peer::{folder, free_address, home};
use crate::http::SOON;
use crate::process::Process;
use crate::server::DEADLINE;

/// A proxy that listens on loopback; killed when dropped.
pub struct Proxy {
    address: SocketAddr,
    _process: Process,
    _folder: TempDir,
}

impl Proxy {
    /// nginx with its defaults. It passes WebSockets on only where it is told to, as at each path that ends in
    /// `/_feed`.
    ///
    /// # Panics
    /// When it is not installed or does not pass on what the server says.
    pub fn nginx(server: SocketAddr) -> Proxy {
        Proxy::start("nginx", server, |program, folder, port| {
            let here = folder.display();
            // Where it would keep what does not fit its memory, if it kept anything.
            let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
                .map(|kind| format!("{kind}_temp_path {here}/{kind};"))
                .join(" ");
            let configuration = format!(
                "daemon off; master_process off; pid {here}/pid;
events {{ }}
http {{
  access_log off;
  {temporary}
  map $http_upgrade $connection_upgrade {{ default upgrade; '' close; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{ proxy_pass http://{server}; }}
    location ~ /_feed$ {{
      proxy_pass http://{server};
      proxy_http_version 1.1;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $connection_upgrade;
    }}
  }}
}}
"
            );
            let file = write(folder, "nginx.conf", &configuration);
            let mut command = Command::new(program);
            command.arg("-p").arg(folder).args(["-e", "stderr", "-c"]).arg(file);
            command
        })
    }

    /// HAProxy with the timeouts of Debian's configuration, which it does not run without.
    ///
    /// # Panics
    /// When it is not installed or does not pass on what the server says.
    pub fn haproxy(server: SocketAddr) -> Proxy {
        Proxy::start("haproxy", server, |program, folder, port| {
            let configuration = format!(
                "defaults
  mode http
  timeout connect 5000
  timeout client 50000
  timeout server 50000
frontend front
  bind 127.0.0.1:{port}
  default_backend back
backend back
  server seqtide {server}
"
            );
            let file = write(folder, "haproxy.cfg", &configuration);
            let mut command = Command::new(program);
            command.args(["-db", "-f"]).arg(file);
            command
        })
    }

    fn start(name: &str, server: SocketAddr, command: impl FnOnce(&Path, &Path, u16) -> Command) -> Proxy {
        let (root, folder, address) = (installed(name), folder(name), free_address());
        let mut command = command(&root.join("usr/sbin").join(name), folder.path(), address.port());
        command.env("LD_LIBRARY_PATH", libraries(&root));
        let process = Process::spawn(command);
        let deadline = Instant::now() + DEADLINE;
        // That something takes connections there tells neither that it passes them on nor that it is this proxy.
        let own = welcome(server).expect("the server's welcome");
        while welcome(address).as_ref() != Some(&own) {
            if Instant::now() > deadline {
                process.fail(&format!("({name}) does not pass on the server's welcome"));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Proxy { address, _process: process, _folder: folder }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// The server's word about itself, its uuid in it; none where nobody gives it.
fn welcome(address: SocketAddr) -> Option<String> {
    let ask = || -> io::Result<String> {
        let mut socket = TcpStream::connect(address)?;
        socket.set_read_timeout(Some(SOON))?;
        socket.write_all(b"GET / HTTP/1.0\r\nHost: x\r\n\r\n")?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer)?;
        Ok(answer)
    };
    let answer = ask().ok()?;
    answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned())
}

fn write(folder: &Path, name: &str, configuration: &str) -> PathBuf {
    let file = folder.join(name);
    fs::write(&file, configuration).expect("a configuration");
    file
}

/// The folder into which Debian's packages were unpacked.
fn installed(name: &str) -> PathBuf {
    let root = home("proxies");
    let program = root.join("usr/sbin").join(name);
    assert!(program.is_file(), "{} is missing: tests/run brings it, in its stage `proxies`", program.display());
    root
}

/// Where their libraries lie: in a folder named for the machine.
fn libraries(root: &Path) -> String {
    let folders = fs::read_dir(root.join("usr/lib")).expect("libraries").map(|entry| entry.expect("a folder").path());
    let of_machine = folders.filter(|folder| folder.to_string_lossy().ends_with("-linux-gnu"));
    of_machine.map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(":")
}
