//! The load: an open loop that sends each request at its time, even if earlier
//! ones are unanswered, and takes the answers as they come.

use super::answer::Answer;
use super::exchange::{Exchange, Progress};
use super::target::Place;
use faas_data::trace::Phase;
use faas_replay::clock::monotonic_ns;
use nix::errno::Errno;
use nix::poll::{ppoll, PollFd, PollFlags};
use nix::sys::time::TimeSpec;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A request to send.
#[derive(Debug)]
pub struct Request<'a> {
    /// When to send it, in nanoseconds since the origin. Requests are sorted by
    /// this.
    pub at_ns: u64,
    /// Its target.
    pub place: &'a Place,
    /// Its body.
    pub body: String,
}

/// The outcome of a request. Times are nanoseconds on the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// When it was sent.
    pub sent_ns: u64,
    /// When it was answered, or failed.
    pub end_ns: u64,
    /// Its answer, or why there is none.
    pub answer: Result<Answer, Errno>,
}

/// An unanswered request, and the events that its connection waits for.
struct Flight {
    id: usize,
    sent_ns: u64,
    exchange: Exchange,
    wants: PollFlags,
}

/// Sends all `requests`, relative to `origin_ns`, and returns their outcomes.
/// Requests that are unanswered `patience_ns` after the last was sent fail with
/// ETIMEDOUT. `over` counts the finished requests.
///
/// # Errors
/// If waiting for the connections fails.
pub fn send_all(
    requests: &[Request<'_>],
    origin_ns: u64,
    patience_ns: u64,
    over: &AtomicU64,
) -> Result<Vec<Outcome>, Errno> {
    let mut load = Load {
        flights: Vec::with_capacity(requests.len()),
        outcomes: vec![None; requests.len()],
        over,
    };
    for (id, request) in requests.iter().enumerate() {
        let at = origin_ns + request.at_ns;
        while load.wait(at)? {}
        load.start(id, request);
    }
    let deadline = monotonic_ns() + patience_ns;
    while !load.flights.is_empty() && load.wait(deadline)? {}
    Ok(load.finish())
}

struct Load<'a> {
    flights: Vec<Flight>,
    outcomes: Vec<Option<Outcome>>,
    over: &'a AtomicU64,
}

impl Load<'_> {
    fn start(&mut self, id: usize, request: &Request<'_>) {
        let sent_ns = monotonic_ns();
        let bytes = request.place.request(&request.body);
        match Exchange::begin(request.place.address, bytes) {
            Ok(exchange) => {
                // Connections over the loopback interface are complete by now.
                let flight = Flight {
                    id,
                    sent_ns,
                    exchange,
                    wants: PollFlags::POLLOUT,
                };
                self.flights.push(flight);
                let _ = self.wait(0);
            }
            Err(errno) => self.end(id, sent_ns, Err(errno)),
        }
    }

    /// Waits until a connection is ready, at most until `deadline_ns`, and
    /// serves those that are. Returns false once it is past the deadline.
    fn wait(&mut self, deadline_ns: u64) -> Result<bool, Errno> {
        let left = deadline_ns.saturating_sub(monotonic_ns());
        let mut fds: Vec<PollFd> = self
            .flights
            .iter()
            .map(|flight| PollFd::new(flight.exchange.fd(), flight.wants))
            .collect();
        let timeout = TimeSpec::new(
            (left / 1_000_000_000) as libc::time_t,
            (left % 1_000_000_000) as libc::c_long,
        );
        match ppoll(&mut fds, Some(timeout), None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
        let ready: Vec<bool> = fds.iter().map(|fd| fd.any().unwrap_or(true)).collect();
        // In reverse order: a finished one is replaced by the last.
        for at in (0..ready.len()).rev().filter(|at| ready[*at]) {
            self.serve(at);
        }
        Ok(left > 0)
    }

    fn serve(&mut self, at: usize) {
        let flight = &mut self.flights[at];
        let result = match flight.exchange.advance() {
            Progress::Wants(wants) => {
                flight.wants = wants;
                return;
            }
            Progress::Done(answer) => Ok(answer),
            Progress::Failed(errno) => Err(errno),
        };
        let (id, sent_ns) = (flight.id, flight.sent_ns);
        self.end(id, sent_ns, result);
        self.flights.swap_remove(at);
    }

    fn end(&mut self, id: usize, sent_ns: u64, answer: Result<Answer, Errno>) {
        self.outcomes[id] = Some(Outcome {
            sent_ns,
            end_ns: monotonic_ns(),
            answer,
        });
        self.over.fetch_add(1, Relaxed);
    }

    fn finish(mut self) -> Vec<Outcome> {
        for flight in std::mem::take(&mut self.flights) {
            self.end(flight.id, flight.sent_ns, Err(Errno::ETIMEDOUT));
        }
        self.outcomes.into_iter().flatten().collect()
    }
}

/// The body of a request: the work of the handler.
pub fn body(phases: &[Phase]) -> String {
    let phases: Vec<String> = phases.iter().map(Phase::to_string).collect();
    format!("{{\"phases\":\"{}\"}}", phases.join(";"))
}
