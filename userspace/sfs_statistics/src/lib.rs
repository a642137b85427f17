//! Statistics of the running scheduler: their content, the server that answers clients, and the
//! clients behind `--monitor`, `--stats` and `scx_sfs functions`. The loader supplies the values.
//!
//! | module | purpose |
//! |---|---|
//! | `metrics` | the statistics themselves |
//! | `print` | printing |
//! | `requests` | requests of clients |
//! | `server` | the socket for clients |
//! | `functions` | the client behind `scx_sfs functions`, and its reports |
//! | `bridge` | passes requests to the control loop |
//! | `monitor` | the client behind `--monitor` and `--stats` |

mod bridge;
mod functions;
mod metrics;
mod monitor;
mod print;
mod requests;
mod server;

use std::io::Write;

use anyhow::Result;
use scx_stats::prelude::*;

pub use bridge::{Desk, StatsBridge};
pub use functions::{print_functions, FunctionReport};
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
