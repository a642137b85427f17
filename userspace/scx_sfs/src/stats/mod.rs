//! Statistics: content, server, and output.
//!
//! | module | purpose |
//! |---|---|
//! | `metrics` | the statistics themselves |
//! | `print` | printing |
//! | `requests` | requests of clients |
//! | `server` | the socket for clients |
//! | `bridge` | passes requests to the control loop |
//! | `monitor` | the client behind `--monitor` and `--stats` |

mod bridge;
mod metrics;
mod monitor;
mod print;
mod requests;
mod server;

use std::io::Write;

use anyhow::Result;
use scx_stats::prelude::*;

pub use bridge::{Desk, StatsBridge};
pub use metrics::{Metrics, RunInfo};
pub use monitor::monitor;
pub use requests::{answers_to, Answer, Request, MAX_FUNCTIONS};

/// Writes a readable description of the statistics.
///
/// # Errors
///
/// Writing fails.
pub fn describe<W: Write>(out: &mut W) -> Result<()> {
    let data: StatsServerData<(), ()> = StatsServerData::new().add_meta(Metrics::meta());
    data.describe_meta(out, None)
}
