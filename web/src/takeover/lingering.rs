//! The end of a connection on which everything was said. A socket that is closed while something of its client is
//! unread resets the connection, and what was said last may be lost with it.

use std::io;
use std::net::Shutdown;
use std::time::Duration;

use socket2::SockRef;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long a client may take to end the connection on its side.
const LINGER_MAX: Duration = Duration::from_secs(2);

/// Says that nothing follows, and takes what the client still says until it has nothing more to say either.
pub async fn end(mut socket: TcpStream) {
    let ended = async {
        SockRef::from(&socket).shutdown(Shutdown::Write)?;
        let mut said = [0; 4096];
        while socket.read(&mut said).await? > 0 {}
        io::Result::Ok(())
    };
    match timeout(LINGER_MAX, ended).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "the connection of a feed is lost behind its end"),
        Err(_elapsed) => tracing::debug!("a client leaves its connection open behind the end of its feed"),
    }
}
