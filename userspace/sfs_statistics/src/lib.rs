//! Statistics and configuration of the running scheduler: the content of the statistics, the server
//! that answers clients, and the clients behind `--monitor`, `--stats` and `scx_sfs functions`. The
//! loader supplies the values.
//!
//! | module | purpose |
//! |---|---|
//! | `metrics` | the statistics themselves |
//! | `print` | printing |
//! | `requests` | requests of clients |
//! | `server` | the socket for clients |
//! | `peer` | what the user of a client may do |
//! | `client` | requests of a client |
//! | `functions` | the client behind `scx_sfs functions`, and its reports |
//! | `bridge` | passes requests to the control loop |
//! | `export`, `times` | what the crate `sfs_metrics` exports, with times by function |
//! | `monitor` | the client behind `--monitor` and `--stats` |

mod bridge;
mod client;
mod export;
mod functions;
mod metrics;
mod monitor;
mod peer;
mod print;
mod requests;
mod server;
pub mod times;

use std::io::Write;

use anyhow::Result;
use scx_stats::prelude::*;

pub use bridge::{Asked, Asker, Desk, StatsBridge};
pub use client::{ask, Connection, Unanswered};
pub use export::{Delays, Export};
pub use functions::{print_functions, FunctionReport};
pub use metrics::{Metrics, RunInfo};
pub use monitor::monitor;
pub use requests::{answers_to, Answer, Request, MAX_FUNCTIONS};

/// How data are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// For people.
    Text {
        /// Width that lines of statistics keep to, in columns; `usize::MAX`: they are not broken.
        columns: usize,
    },
    /// For programs.
    Json,
}

/// Writes a description of the statistics.
///
/// # Errors
///
/// Writing fails.
pub fn describe<W: Write>(out: &mut W, form: Form) -> Result<()> {
    if form == Form::Json {
        serde_json::to_writer_pretty(&mut *out, &Metrics::meta())?;
        return Ok(writeln!(out)?);
    }
    let data: StatsServerData<(), ()> = StatsServerData::new().add_meta(Metrics::meta());
    data.describe_meta(out, None)
}
