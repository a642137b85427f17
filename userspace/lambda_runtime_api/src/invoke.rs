//! The front end for requests: `POST /2015-03-31/functions/NAME/invocations`,
//! the path of Lambda's own `Invoke`. Status and body are those of a function
//! URL: 200 with the handler's result, 502 if it failed.

use crate::function::{Function, Invocation, Reply};
use crate::http::{Connection, Request};
use anyhow::Result;
use nix::time::{clock_gettime, ClockId};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::thread;

/// All functions, and the number of the next invocation.
#[derive(Debug)]
pub struct Front {
    functions: Vec<Arc<Function>>,
    invocations: AtomicU64,
}

impl Front {
    /// Creates the front end of these functions.
    pub fn new(functions: Vec<Arc<Function>>) -> Self {
        Self {
            functions,
            invocations: AtomicU64::new(0),
        }
    }

    /// Serves requests forever, with a thread per connection.
    pub fn listen(self: &Arc<Self>, listener: &TcpListener) {
        for stream in listener.incoming().flatten() {
            let front = Arc::clone(self);
            thread::spawn(move || {
                if let Err(error) = front.serve(stream) {
                    eprintln!("lambda_runtime_api: a request to invoke failed: {error:#}");
                }
            });
        }
    }

    fn serve(&self, stream: TcpStream) -> Result<()> {
        let mut connection = Connection::new(stream)?;
        while let Some(request) = connection.request()? {
            let close = request.close;
            let (status, body) = self.invoke(request);
            connection.answer(status, "", &body)?;
            if close {
                break;
            }
        }
        Ok(())
    }

    fn invoke(&self, request: Request) -> (&'static str, Vec<u8>) {
        let arrived_ns = monotonic_ns();
        let name = request
            .path
            .strip_prefix("/2015-03-31/functions/")
            .and_then(|rest| rest.strip_suffix("/invocations"));
        let function = self.functions.iter().find(|one| Some(&*one.name) == name);
        let Some(function) = function.filter(|_| request.method == "POST") else {
            return (
                "404 Not Found",
                br#"{"message":"no such function"}"#.to_vec(),
            );
        };
        let number = self.invocations.fetch_add(1, Relaxed);
        let id = format!("00000000-0000-4000-8000-{number:012x}");
        let (invocation, reply) = Invocation::new(id, arrived_ns, request.body);
        function.invoke(invocation);
        match reply.recv() {
            Ok(Reply::Result(body)) => ("200 OK", body),
            Ok(Reply::Error(body)) => ("502 Bad Gateway", body),
            Ok(Reply::SandboxEnded) | Err(_) => (
                "502 Bad Gateway",
                br#"{"message":"the sandbox ended before it answered"}"#.to_vec(),
            ),
        }
    }
}

/// Nanoseconds on the monotonic clock, which every Linux has.
fn monotonic_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |time| {
        time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
    })
}
