//! A connection as its task sees it: the framework, and what is answered beneath it. Each is polled when there is
//! something for it. The framework's own turn takes as long as a plain answer, also where it finds nothing to do.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker, ready};

use futures_util::task::AtomicWaker;

use super::detachable::Detachable;

/// A connection, until it ends.
pub struct Served<F> {
    socket: Detachable,
    /// What the framework does with it.
    framework: Pin<Box<F>>,
    due: Arc<Due>,
    /// Wakes the framework.
    waker: Waker,
}

/// Whether the framework has been woken since it was polled: by a timer of its own, or what else it waits for. Of what
/// comes over the socket it is told when it was seen that it is for the framework.
#[derive(Default)]
struct Due {
    is_due: AtomicBool,
    task: AtomicWaker,
}

impl Wake for Due {
    fn wake(self: Arc<Due>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Due>) {
        self.is_due.store(true, Ordering::Release);
        self.task.wake();
    }
}

impl<F> Served<F> {
    /// The connection of a socket with which the framework does this.
    pub fn new(socket: Detachable, framework: F) -> Served<F> {
        let due = Arc::<Due>::default();
        due.is_due.store(true, Ordering::Relaxed);
        Served { socket, framework: Box::pin(framework), waker: Waker::from(Arc::clone(&due)), due }
    }
}

impl<F: Future> Future for Served<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Served { socket, framework, due, waker } = &mut *self;
        due.task.register(cx.waker());
        if !due.is_due.swap(false, Ordering::AcqRel) {
            ready!(socket.poll_shortcut(cx));
        }
        socket.wake_by_reads(cx.waker());
        framework.as_mut().poll(&mut Context::from_waker(waker))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::future::poll_fn;
    use std::rc::Rc;

    use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};
    use tokio::net::TcpStream;
    use tokio::task::{LocalSet, yield_now};

    use super::super::detachable::tests::{GET, PUT, connection_with_shortcut};
    use super::*;

    /// A framework that reads all it is given.
    #[derive(Default)]
    struct Framework {
        polled: Cell<usize>,
        given: RefCell<String>,
        is_at_end: Cell<bool>,
        waker: RefCell<Option<Waker>>,
    }

    impl Framework {
        fn poll(&self, mut socket: &mut Detachable, cx: &mut Context<'_>) -> Poll<()> {
            self.polled.set(self.polled.get() + 1);
            *self.waker.borrow_mut() = Some(cx.waker().clone());
            loop {
                let mut piece = [0; 1000];
                let mut read = ReadBuf::new(&mut piece);
                ready!(Pin::new(&mut socket).poll_read(cx, &mut read)).unwrap();
                if read.filled().is_empty() {
                    self.is_at_end.set(true);
                    return Poll::Ready(());
                }
                self.given.borrow_mut().push_str(str::from_utf8(read.filled()).unwrap());
            }
        }

        async fn is_polled(&self, times: usize) {
            while self.polled.get() < times {
                yield_now().await;
            }
        }
    }

    /// Answers what the framework was given last.
    async fn answer(framework: &mut Detachable, client: &mut TcpStream) {
        framework.write_all(b"1").await.unwrap();
        framework.flush().await.unwrap();
        assert_eq!(client.read_u8().await.unwrap(), b'1');
    }

    #[tokio::test]
    async fn the_framework_is_polled_for_what_is_its_own_alone() {
        let (socket, mut client, told, _) = connection_with_shortcut().await;
        let (framework, mut side) = (Rc::<Framework>::default(), socket.clone());
        let polled = {
            let (framework, mut socket) = (Rc::clone(&framework), socket.clone());
            poll_fn(move |cx| framework.poll(&mut socket, cx))
        };
        let put = async || {
            client.write_all(PUT.as_bytes()).await.unwrap();
            told.notify_one();
            let mut answer = [0; 2];
            client.read_exact(&mut answer).await.unwrap();
            assert_eq!(&answer, b"{}");
        };
        let tasks = LocalSet::new();
        let served = tasks.spawn_local(Served::new(socket, polled));
        let used = async {
            framework.is_polled(1).await;
            let mut put = put;
            put().await;
            put().await;
            assert_eq!(framework.polled.get(), 1);
            framework.waker.borrow().as_ref().unwrap().wake_by_ref();
            framework.is_polled(2).await;
            // It has looked for something to read, and is not woken by what comes all the same.
            put().await;
            assert_eq!(framework.polled.get(), 2);
            assert!(framework.given.borrow().is_empty());
        };
        tasks.run_until(used).await;
        let given = async {
            client.write_all(GET.as_bytes()).await.unwrap();
            framework.is_polled(3).await;
            assert_eq!(framework.given.take(), GET);
            // It answers, and what comes next may be answered beneath it again. That is too long for it, and half.
            answer(&mut side, &mut client).await;
            let long = format!("PUT /a HTTP/1.1\r\nContent-Length: 50000\r\n\r\n{}", "x".repeat(50_000));
            client.write_all(long.as_bytes()).await.unwrap();
            while framework.given.borrow().len() < long.len() {
                yield_now().await;
            }
            assert_eq!(framework.given.take(), long);
            answer(&mut side, &mut client).await;
            client.write_all(&GET.as_bytes()[..5]).await.unwrap();
            drop(client);
            served.await.unwrap();
            assert_eq!(framework.given.take(), GET[..5]);
            assert!(framework.is_at_end.get());
        };
        tasks.run_until(given).await;
    }
}
