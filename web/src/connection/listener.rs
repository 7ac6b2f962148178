//! The listener: the framework's server, built from its parts, because the server it has ready made serves no other
//! sockets than its own.

use std::fmt::Debug;
use std::io;
use std::net::TcpListener;
use std::rc::Rc;
use std::time::Duration;

use actix_http::body::MessageBody;
use actix_http::{HttpService, Protocol, Request, Response};
use actix_server::Server;
use actix_service::{
    IntoServiceFactory, Service, ServiceFactory, ServiceFactoryExt as _, apply_fn_factory, map_config,
};
use actix_web::Error;
use actix_web::dev::AppConfig;
use tokio::net::TcpStream;

use super::detachable::{Detachable, SHORTCUT_FOR};
use super::served::Served;
use super::shortcut::Shortcut;
use crate::wire::pieces::PIECE_BYTES;

/// How long a client may take to send the head of its first request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a connection that says nothing is kept for its next request: longer than most who keep one for later do
/// (nginx 60 s, Go 90 s), so that it is seldom closed as its next request comes, also where the framework counts it
/// from the last request that came to it.
pub const KEEP_ALIVE: Duration = Duration::from_secs(120).saturating_add(SHORTCUT_FOR);
/// How long a connection that is closed may take to end.
const DISCONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Most connections of a web thread; when all have so many, the next wait to be accepted. Feeds whose sockets have left
/// the framework do not count.
const CONNECTIONS_MAX: usize = 25_600;

/// How the server runs.
pub struct Settings {
    /// Threads, each of which takes connections.
    pub workers: usize,
    /// How long requests under way may take when the server stops, in seconds.
    pub shutdown_timeout_secs: u64,
}

/// Serves an app. Each worker makes one `own` for itself, which the requests that it serves find among their
/// connection's data, and a `shortcut`, which answers some of them before the app would.
///
/// # Errors
/// When the listener cannot be used.
pub fn serve<O, F, I, S, B>(
    listener: TcpListener,
    settings: &Settings,
    own: impl Fn() -> O + Send + Clone + 'static,
    shortcut: impl Fn() -> Rc<dyn Shortcut> + Send + Clone + 'static,
    app: F,
) -> io::Result<Server>
where
    O: Clone + 'static,
    F: Fn() -> I + Send + Clone + 'static,
    I: IntoServiceFactory<S, Request>,
    S: ServiceFactory<Request, Config = AppConfig> + 'static,
    S::Error: Into<Error> + 'static,
    S::InitError: Debug,
    S::Response: Into<Response<B>> + 'static,
    <S::Service as Service<Request>>::Future: 'static,
    S::Service: 'static,
    B: MessageBody + 'static,
{
    let address = listener.local_addr()?;
    let server = Server::build().disable_signals().shutdown_timeout(settings.shutdown_timeout_secs);
    let server = server.workers(settings.workers).max_concurrent_connections(CONNECTIONS_MAX);
    let stopping = server.graceful_shutdown_signal();
    let server = server.listen("http", listener, move || {
        let (own, shortcut, stopping) = (own(), shortcut(), stopping.clone());
        let app = app().into_factory().map_err(|error| error.into().error_response());
        let http = HttpService::build()
            .graceful_shutdown_signal(move || {
                let stopping = stopping.clone();
                async move { stopping.notified().await }
            })
            .keep_alive(KEEP_ALIVE)
            .client_request_timeout(HEAD_TIMEOUT)
            .client_disconnect_timeout(DISCONNECT_TIMEOUT)
            // A client that vanishes is noticed at once, not at the next failing write.
            .h1_allow_half_closed(false)
            // What lies ready for a client that does not read: this and one piece more.
            .h1_write_buffer_size(PIECE_BYTES)
            .local_addr(address)
            .on_connect_ext(move |socket: &Detachable, data| {
                data.insert(socket.clone());
                data.insert(own.clone());
            })
            .finish(map_config(app, |()| AppConfig::default()));
        apply_fn_factory(http, move |stream: TcpStream, http| {
            let peer = stream.peer_addr().ok();
            let socket = Detachable::new(stream, Some(Rc::clone(&shortcut)));
            Served::new(socket.clone(), http.call((socket, Protocol::Http1, peer)))
        })
    })?;
    Ok(server.run())
}
