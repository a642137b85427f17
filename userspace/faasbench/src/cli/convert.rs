//! `faasbench convert`.

use super::factor;
use crate::convert;
use crate::input;
use crate::output::{note, Sink};
use crate::trace;
use anyhow::{bail, Result};
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// How many lines that could not be converted are shown.
const SHOWN: usize = 10;

#[derive(Debug, Subcommand)]
pub(super) enum Convert {
    /// Request lists of the SFS artefact (`name script N arrival id`)
    ///
    /// Service times are the artefact's own durations of fib(N). Lines that
    /// cannot be used are skipped, counted and shown on standard error.
    Sfs(SfsArgs),
}

#[derive(Debug, Args)]
pub(super) struct SfsArgs {
    /// The request list
    file: PathBuf,
    /// Factor on the arrivals, which are milliseconds (0.001 to 1000); the
    /// artefact uses 9
    #[arg(long, default_value = "9", value_parser = factor)]
    multiplier: f64,
    /// The trace to write; - is standard output
    #[arg(short, long, default_value = "-", value_name = "FILE")]
    output: PathBuf,
}

impl Convert {
    /// Writes the trace.
    pub(super) fn execute(self) -> Result<()> {
        match self {
            Self::Sfs(args) => sfs(&args),
        }
    }
}

fn sfs(args: &SfsArgs) -> Result<()> {
    let bytes = input::read(&args.file)?;
    let sink = Sink::open(&args.output)?;
    let text = String::from_utf8_lossy(&bytes);
    let converted = convert::sfs::convert(&text, args.multiplier);
    let file = args.file.display();
    for (line, reason) in converted.skipped.iter().take(SHOWN) {
        note(&format!("{file}:{line}: {reason}, skipped"));
    }
    if converted.skipped.len() > SHOWN {
        note(&format!("... and {} more", converted.skipped.len() - SHOWN));
    }
    if converted.invocations.is_empty() {
        bail!("{file}: none of its lines is a request `name script N arrival id`");
    }
    sink.commit(trace::to_csv(&converted.invocations).as_bytes())?;
    note(&format!(
        "{file}: {} requests converted, {} lines skipped, {} sorted in",
        converted.invocations.len(),
        converted.skipped.len(),
        converted.out_of_order,
    ));
    Ok(())
}
