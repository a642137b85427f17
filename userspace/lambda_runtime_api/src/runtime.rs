//! The Runtime API of one sandbox: the sandbox requests its next event, which
//! blocks until there is one, and posts the handler's result.

use crate::function::{Event, Function, Reply};
use crate::hint::Hints;
use crate::http::{Connection, Request};
use anyhow::Result;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

const PREFIX: &str = "/2018-06-01/runtime/";

/// Maximum run time of a handler, as reported to it: Lambda's maximum.
const DEADLINE: Duration = Duration::from_secs(900);

/// The Runtime API of a sandbox.
#[derive(Debug)]
pub struct Runtime {
    /// The function of the sandbox.
    pub function: Arc<Function>,
    /// The sandbox's number.
    pub sandbox: usize,
    /// The destination of hints, if any.
    pub hints: Option<Arc<Hints>>,
}

impl Runtime {
    /// Serves the sandbox forever, with a thread per connection.
    pub fn listen(self: &Arc<Self>, listener: &TcpListener) {
        for stream in listener.incoming().flatten() {
            let runtime = Arc::clone(self);
            // The thread that started the sandbox sees its end.
            thread::spawn(move || runtime.serve(stream));
        }
    }

    fn serve(&self, stream: TcpStream) -> Result<()> {
        let pid = self.function.pid(self.sandbox);
        let mut connection = Connection::new(stream)?;
        while let Some(request) = connection.request()? {
            let close = request.close;
            let path = request.path.strip_prefix(PREFIX).unwrap_or_default();
            match (request.method.as_str(), path) {
                ("GET", "invocation/next") => {
                    let Some(event) = self.function.next(self.sandbox, pid) else {
                        return Ok(());
                    };
                    self.hand_out(&mut connection, &event)?;
                }
                _ => self.take_in(&mut connection, &request, path)?,
            }
            if close {
                break;
            }
        }
        Ok(())
    }

    fn hand_out(&self, connection: &mut Connection, event: &Event) -> Result<()> {
        let name = &self.function.name;
        // Before the answer, so that the hint is there when the sandbox wakes
        // up.
        if let Some(hints) = &self.hints {
            hints.send(event.pid, event.arrived_ns, name);
        }
        let deadline = SystemTime::now() + DEADLINE;
        let deadline = deadline.duration_since(SystemTime::UNIX_EPOCH);
        let headers = format!(
            "Lambda-Runtime-Aws-Request-Id: {}\r\n\
             Lambda-Runtime-Deadline-Ms: {}\r\n\
             Lambda-Runtime-Invoked-Function-Arn: arn:aws:lambda:local:000000000000:function:{name}\r\n",
            event.id,
            deadline.unwrap_or_default().as_millis(),
        );
        connection.answer("200 OK", &headers, &event.body)
    }

    fn take_in(&self, connection: &mut Connection, request: &Request, path: &str) -> Result<()> {
        if request.method == "POST" && path == "init/error" {
            let text = String::from_utf8_lossy(&request.body);
            eprintln!(
                "lambda_runtime_api: {} cannot start: {text}",
                self.function.name
            );
            return connection.answer("202 Accepted", "", b"{}");
        }
        let invocation = path.strip_prefix("invocation/").unwrap_or_default();
        let (id, reply) = match invocation.split_once('/') {
            Some((id, "response")) => (id, Reply::Result(request.body.clone())),
            Some((id, "error")) => (id, Reply::Error(request.body.clone())),
            _ => return connection.answer("404 Not Found", "", b"{}"),
        };
        if request.method == "POST" && self.function.answer(self.sandbox, id, reply) {
            connection.answer("202 Accepted", "", b"{}")
        } else {
            let body = br#"{"errorMessage":"no such invocation","errorType":"InvalidRequestID"}"#;
            connection.answer("400 Bad Request", "", body)
        }
    }
}
