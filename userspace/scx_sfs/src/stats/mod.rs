//! Statistics: what is published, how it is served, and how it is printed.
//!
//! | module | what |
//! |---|---|
//! | `metrics` | the statistics themselves |
//! | `print` | how they are printed |
//! | `requests` | what clients may ask for |
//! | `server` | the socket that they ask at |
//! | `bridge` | how their questions reach the control loop |
//! | `monitor` | the client that `--monitor` and `--stats` are |

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

/// Describes the statistics, for people.
///
/// # Errors
///
/// They cannot be written.
pub fn describe<W: Write>(out: &mut W) -> Result<()> {
    let data: StatsServerData<(), ()> = StatsServerData::new().add_meta(Metrics::meta());
    data.describe_meta(out, None)
}
