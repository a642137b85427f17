//! `scx_sfs advise`: its options, and the start of the program that does it.
//!
//! The program `sfs_advise` has the kernel half compiled for the host and a model of the kernel. The
//! loader, which runs as root for weeks, should not carry them, so it executes that program. Both
//! parse the same options, which are defined here.
#![forbid(unsafe_code)]

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{anyhow, Result};
use clap::Args;
use sfs_cgroups::SandboxPattern;

/// The program that does it.
pub const PROGRAM: &str = "sfs_advise";

/// Say what scx_sfs would change on this machine, without loading it.
///
/// It watches the machine under its present scheduler, and replays what it saw
/// on a simulated kernel with the code of scx_sfs. It loads no scheduler and
/// changes nothing.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
What counts as a function is what scx_sfs would take for one by default: each
process that begins during the recording is an invocation, of the function named
by its program and its parent's. Accepted connections are not seen: for servers
that stay, the advice says nothing. A process that has started others counts as
load only, since it ends when they do.

The recording goes on for up to half as long again, until the invocations that
began in time have ended. Ctrl-C ends it early; the advice is then given from
what was recorded.

Exit status: 0 there is an advice, or the reason why there is none; 1 it failed;
2 wrong options.

Examples, as root:
  scx_sfs advise --record 60s                    # watch for a minute
  scx_sfs advise --record 10m --cgroup 'faasbench/*' --save trace.csv
  scx_sfs advise --from trace.csv --cpus 8       # what if it had 8 CPUs?
  scx_sfs advise --record 60s --json | jq .verdict")]
pub struct AdviseCommand {
    /// Watch for so long: 500ms, 60s, 10m [100ms..=24h].
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "from",
          required_unless_present = "from")]
    pub record: Option<Duration>,

    /// Read what was seen from FILE instead, a trace as --save or faasbench
    /// writes it. EEVDF is then estimated, and other work is unknown.
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,

    /// Write what was seen to FILE, as a trace for faasbench and for --from.
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    pub save: Option<PathBuf>,

    /// Only processes in this cgroup and below are invocations, of the function
    /// that the cgroup names; a path below /sys/fs/cgroup in which each name
    /// may be a pattern, as with --cgroup of scx_sfs itself; may be repeated.
    #[arg(long, value_name = "PATH", value_parser = SandboxPattern::parse, conflicts_with = "from")]
    pub cgroup: Vec<SandboxPattern>,

    /// With --from: number of CPUs [1..=1024]; default: those of this machine.
    #[arg(long, value_name = "N", conflicts_with = "record",
          value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub cpus: Option<u16>,

    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

impl AdviseCommand {
    /// Replaces this process by the program that does it, with the arguments of this one. It is
    /// looked for beside this program, and then in PATH. Returns only if that fails.
    ///
    /// # Errors
    ///
    /// The program is missing, or cannot be executed.
    pub fn run(&self) -> Result<()> {
        let beside = env::current_exe().ok();
        let program = find(beside.as_deref(), env::var_os("PATH"))?;
        // The options were read behind the name of the command.
        let error = Command::new(&program).args(env::args_os().skip(2)).exec();
        Err(anyhow!("cannot execute {}: {error}", program.display()))
    }
}

/// Returns the path of the program: beside `own`, or in a folder of `path`.
fn find(own: Option<&Path>, path: Option<OsString>) -> Result<PathBuf> {
    let beside = own.and_then(Path::parent).map(Path::to_owned);
    let path = path.unwrap_or_default();
    let folders = beside.clone().into_iter().chain(env::split_paths(&path));
    let mut programs = folders.map(|folder| folder.join(PROGRAM));
    programs.find(|program| program.is_file()).ok_or_else(|| {
        let place = beside.map_or("this program".into(), |folder| folder.display().to_string());
        anyhow!(
            "the program {PROGRAM} is neither in {place} nor in PATH: install it, it comes with \
             scx_sfs"
        )
    })
}

/// Parses a time such as 60s.
fn duration(text: &str) -> Result<Duration, String> {
    const WANTED: &str = "want a number with ms, s, m or h, from 100ms to 24h, such as 60s";
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let unit = match unit {
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(WANTED.into()),
    };
    let number: f64 = number.parse().map_err(|_| WANTED)?;
    let time = Duration::try_from_secs_f64(number * unit).map_err(|_| WANTED)?;
    let is_in_range = (0.1..=86_400.0).contains(&time.as_secs_f64());
    is_in_range.then_some(time).ok_or_else(|| WANTED.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};
    use std::fs;

    #[derive(Debug, Parser)]
    struct Only {
        #[command(flatten)]
        advise: AdviseCommand,
    }

    fn parse(words: &str) -> Result<AdviseCommand, String> {
        let all = ["advise"].into_iter().chain(words.split_whitespace());
        let only = Only::try_parse_from(all).map_err(|error| error.to_string());
        only.map(|only| only.advise)
    }

    #[test]
    fn times_have_units_and_bounds() {
        let of = |text: &str| parse(&format!("--record {text}")).map(|found| found.record);
        assert_eq!(of("60s"), Ok(Some(Duration::from_secs(60))));
        assert_eq!(of("500ms"), Ok(Some(Duration::from_millis(500))));
        assert_eq!(of("1.5m"), Ok(Some(Duration::from_secs(90))));
        assert_eq!(of("24h"), Ok(Some(Duration::from_secs(86_400))));
        for wrong in [
            "0s", "", "60", "s", "99ms", "25h", "1e9s", "1..2s", "1 s", "nans",
        ] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        assert!(of("0s").unwrap_err().contains("from 100ms to 24h"));
    }

    #[test]
    fn a_recording_is_made_or_read() {
        for wrong in [
            "",
            "--record 1s --from t.csv",
            "--from t.csv --save u.csv",
            "--from t.csv --cgroup f/*",
            "--record 1s --cpus 4",
            "--from t.csv --cpus 0",
            "--record 1s --cgroup ..",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse("--from t.csv --cpus 8").unwrap().cpus, Some(8));
    }

    #[test]
    fn the_help_fits_80_columns() {
        for help in [
            Only::command().max_term_width(80).render_help(),
            Only::command().max_term_width(80).render_long_help(),
        ] {
            let text = help.to_string();
            let wide: Vec<&str> = text.lines().filter(|l| l.chars().count() > 80).collect();
            assert!(wide.is_empty() && text.contains("Examples"), "{wide:?}");
        }
    }

    #[test]
    fn the_program_is_beside_the_loader_or_in_the_path() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let own = one.path().join("scx_sfs");
        let path = || Some(other.path().as_os_str().to_owned());
        let missing = find(Some(&own), path()).unwrap_err().to_string();
        assert!(
            missing.contains(PROGRAM) && missing.contains(&one.path().display().to_string()),
            "{missing}"
        );
        fs::write(other.path().join(PROGRAM), "").unwrap();
        assert_eq!(
            find(Some(&own), path()).unwrap(),
            other.path().join(PROGRAM)
        );
        fs::write(one.path().join(PROGRAM), "").unwrap();
        assert_eq!(find(Some(&own), path()).unwrap(), one.path().join(PROGRAM));
        assert_eq!(find(None, path()).unwrap(), other.path().join(PROGRAM));
        assert!(find(None, None).is_err());
    }
}
