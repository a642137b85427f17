//! One request to the running scheduler, and its answer.

use std::fmt;
use std::io::{Error, ErrorKind};
use std::path::Path;

use scx_stats::prelude::*;
use scx_stats::StatsErrno;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{FunctionReport, Metrics};

/// Longest wait for an answer, in ms: the control loop answers within milliseconds, but a busy
/// machine may let it wait.
const LIMIT_MS: u64 = 10_000;

/// Why there is no answer.
#[derive(Debug)]
pub enum Unanswered {
    /// No scx_sfs runs.
    NoScheduler,
    /// This user may not connect.
    Denied,
    /// The scheduler refuses the request: its sentence.
    Refused(String),
    /// Something else.
    Failed(anyhow::Error),
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoScheduler => f.write_str("no scx_sfs is running"),
            Self::Denied => f.write_str(
                "only root and the user that runs scx_sfs may talk to it: run this as root",
            ),
            Self::Refused(sentence) => f.write_str(sentence),
            Self::Failed(error) => write!(f, "no scx_sfs answers ({error:#})"),
        }
    }
}

impl std::error::Error for Unanswered {}

impl From<anyhow::Error> for Unanswered {
    fn from(error: anyhow::Error) -> Self {
        if error.downcast_ref::<StatsErrno>().is_some() {
            let said = error.root_cause().to_string();
            // The server's sentence is a string of JSON.
            return Self::Refused(serde_json::from_str(&said).unwrap_or(said));
        }
        match error.downcast_ref().map(Error::kind) {
            // No socket, or the leftover of a killed scheduler.
            Some(ErrorKind::NotFound | ErrorKind::ConnectionRefused) => Self::NoScheduler,
            Some(ErrorKind::PermissionDenied) => Self::Denied,
            _ => Self::Failed(error),
        }
    }
}

/// Returns the running scheduler's answer to `request` with these arguments.
///
/// # Errors
///
/// There is none, or it is a refusal.
pub fn ask(request: &str, arguments: &[(&str, &str)]) -> Result<Value, Unanswered> {
    Connection::open(None)?.ask(request, arguments)
}

/// A connection to the running scheduler, for several requests.
pub struct Connection(StatsClient);

impl Connection {
    /// Connects to the scheduler that serves at `socket`; None: where all scx schedulers do.
    ///
    /// # Errors
    ///
    /// There is none, or this user may not connect.
    pub fn open(socket: Option<&Path>) -> Result<Self, Unanswered> {
        let client = match socket {
            Some(path) => StatsClient::new().set_path(path),
            None => StatsClient::new(),
        };
        Ok(Self(client.connect(Some(LIMIT_MS))?))
    }

    /// Returns the answer to `request` with these arguments. After an error other than a refusal
    /// the connection is of no more use.
    ///
    /// # Errors
    ///
    /// There is no answer, it is a refusal, or it is of another form.
    pub fn ask<T: DeserializeOwned>(
        &mut self,
        request: &str,
        arguments: &[(&str, &str)],
    ) -> Result<T, Unanswered> {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Ok(self
            .0
            .request(request, arguments.iter().map(own).collect())?)
    }

    /// Returns the statistics. Counters are since load the first time, then since the previous
    /// answer on this connection.
    ///
    /// # Errors
    ///
    /// As [`Connection::ask`].
    pub fn metrics(&mut self) -> Result<Metrics, Unanswered> {
        self.ask("stats", &[])
    }

    /// Returns what was learned about the `most` functions with the most work.
    ///
    /// # Errors
    ///
    /// As [`Connection::ask`].
    pub fn functions(&mut self, most: usize) -> Result<Vec<FunctionReport>, Unanswered> {
        let count = most.to_string();
        self.ask("stats", &[("target", "functions"), ("count", &count)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_told_apart() {
        let io = |kind| anyhow::Error::from(Error::from(kind));
        let refused = anyhow::anyhow!("\"no \\\"key\\\"\"").context(StatsErrno(22));
        for (error, said) in [
            (io(ErrorKind::NotFound), "no scx_sfs is running"),
            (io(ErrorKind::ConnectionRefused), "no scx_sfs is running"),
            (io(ErrorKind::PermissionDenied), "run this as root"),
            (anyhow::anyhow!("read timed out"), "(read timed out)"),
            (refused, "no \"key\""),
        ] {
            let text = Unanswered::from(error).to_string();
            assert!(text.contains(said), "{text}");
        }
    }
}
