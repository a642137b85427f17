//! Passes requests of statistics readers, each in its own thread, to the control loop.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::mpsc::{channel, sync_channel, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::eventfd::{EfdFlags, EventFd};

use super::requests::{reader, Answer, Request};
use super::server::Server;

/// A request that waits for its answer.
pub struct Asked {
    /// The request.
    pub what: Request,
    reader: SyncSender<Answer>,
}

impl Asked {
    /// Answers it.
    pub fn reply(self, answer: Answer) {
        // A reader that has gone no longer needs the answer.
        let _ = self.reader.send(answer);
    }
}

/// Meeting point of readers and the control loop. poll() can wait for its requests, which it
/// cannot for a channel alone.
pub struct Desk {
    asked: Receiver<Asked>,
    asker: Asker,
}

/// A reader's end of it.
#[derive(Clone)]
pub struct Asker {
    queue: Sender<Asked>,
    wake: Arc<EventFd>,
}

const GONE: &str = "the control loop has ended";

impl Asker {
    /// Waits for the control loop's answer.
    fn ask(&self, what: Request) -> Result<Answer> {
        self.send(what)?.recv().context(GONE)
    }

    /// Waits for the control loop's answer, for at most `limit`.
    ///
    /// # Errors
    ///
    /// There is none: the control loop has ended, or is late.
    pub fn ask_within(&self, what: Request, limit: Duration) -> Result<Answer> {
        let answered = self.send(what)?;
        answered.recv_timeout(limit).map_err(|error| match error {
            RecvTimeoutError::Disconnected => anyhow::Error::msg(GONE),
            RecvTimeoutError::Timeout => {
                anyhow::Error::msg("the control loop has not answered in time")
            }
        })
    }

    fn send(&self, what: Request) -> Result<Receiver<Answer>> {
        let (reader, answered) = sync_channel(1);
        // The descriptor is written after the request is queued, so that no wake-up is lost.
        let asked = Asked { what, reader };
        self.queue.send(asked).ok().context(GONE)?;
        self.wake.write(1).context("cannot wake the control loop")?;
        Ok(answered)
    }
}

impl Desk {
    /// # Errors
    ///
    /// There are no more file descriptors.
    pub fn new() -> Result<Self> {
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        let wake = EventFd::from_value_and_flags(0, flags)
            .context("cannot create a descriptor for statistics")?;
        let (queue, asked) = channel();
        let wake = Arc::new(wake);
        Ok(Self {
            asked,
            asker: Asker { queue, wake },
        })
    }

    /// Returns a reader's end.
    pub fn asker(&self) -> Asker {
        self.asker.clone()
    }

    /// Takes all queued requests.
    pub fn take(&self) -> Vec<Asked> {
        // Clear first: a request queued after this is taken now, and the next wake-up may find
        // nothing.
        let _ = self.asker.wake.read();
        self.asked.try_iter().collect()
    }
}

/// Path where clients of all scx schedulers look for a server.
const SOCKET: &str = "/var/run/scx/root/stats";

/// The statistics server, and its connection to the control loop.
pub struct StatsBridge {
    desk: Desk,
    // Stops when dropped.
    _server: Server,
}

impl StatsBridge {
    /// Starts the server at the path that all scx schedulers use. Only this user can connect.
    ///
    /// # Errors
    ///
    /// Its socket cannot be created.
    pub fn launch() -> Result<Self> {
        let desk = Desk::new()?;
        let asker = desk.asker.clone();
        let new_reader = move |peer| {
            let asker = asker.clone();
            reader(peer, move |what| asker.ask(what))
        };
        let server =
            Server::launch(Path::new(SOCKET), new_reader).context("cannot serve statistics")?;
        Ok(Self {
            desk,
            _server: server,
        })
    }

    /// Returns a reader's end, for a server of another kind.
    pub fn asker(&self) -> Asker {
        self.desk.asker()
    }

    /// Takes all queued requests of readers.
    pub fn take(&self) -> Vec<Asked> {
        self.desk.take()
    }
}

impl AsFd for Desk {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.asker.wake.as_fd()
    }
}

impl AsFd for StatsBridge {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.desk.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
    use std::thread;

    /// Far longer than a request takes, on any machine.
    const LIMIT: Duration = Duration::from_secs(60);

    fn is_asked(desk: &Desk, timeout: Duration) -> bool {
        let mut fds = [PollFd::new(desk.asker.wake.as_fd(), PollFlags::POLLIN)];
        poll(&mut fds, PollTimeout::try_from(timeout).unwrap()).unwrap() > 0
    }

    fn answer_all(desk: &Desk) {
        for asked in desk.take() {
            asked.reply(Answer::Functions(Vec::new()));
        }
    }

    #[test]
    fn all_concurrent_readers_are_answered() {
        const READERS: usize = 4;
        const EACH: usize = 500;
        let desk = Desk::new().unwrap();
        assert!(!is_asked(&desk, Duration::ZERO));
        let readers: Vec<_> = (0..READERS)
            .map(|reader| {
                let asker = desk.asker.clone();
                thread::spawn(move || {
                    for i in 0..EACH {
                        let answer = asker.ask(Request::Functions { most: 1 }).unwrap();
                        assert!(matches!(answer, Answer::Functions(_)));
                        if i % (reader + 2) == 0 {
                            thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        while readers.iter().any(|reader| !reader.is_finished()) {
            if is_asked(&desk, Duration::from_millis(10)) {
                answer_all(&desk);
            }
        }
        readers
            .into_iter()
            .for_each(|reader| reader.join().unwrap());
        assert!(desk.asked.try_recv().is_err());
    }

    #[test]
    fn a_reader_need_not_wait_for_ever() {
        let desk = Desk::new().unwrap();
        let asker = desk.asker();
        let late = asker.ask_within(Request::Export, Duration::from_millis(1));
        assert!(late.unwrap_err().to_string().contains("in time"));
        let waiting = thread::spawn(move || asker.ask_within(Request::Export, LIMIT));
        assert!(is_asked(&desk, LIMIT));
        drop(desk);
        let gone = waiting.join().unwrap().unwrap_err();
        assert!(gone.to_string().contains("ended"), "{gone}");
    }

    #[test]
    fn a_reader_learns_that_the_control_loop_has_ended() {
        let desk = Desk::new().unwrap();
        let asker = desk.asker.clone();
        let waiting = thread::spawn(move || {
            let first = asker.ask(Request::Metrics).is_err();
            (first, asker.ask(Request::Metrics).is_err())
        });
        assert!(is_asked(&desk, LIMIT));
        drop(desk);
        assert_eq!(waiting.join().unwrap(), (true, true));
    }
}
