//! Has `scripts/bench` measure a setting. What is measured already stays: bench
//! keeps finished rows.

use crate::plan::{Row, Setting, Size, Source};
use anyhow::{bail, Context, Result};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What `scripts/bench` takes from its environment and must not take from ours.
const OWN: [&str; 12] = [
    "SCHEDULERS",
    "TRACE",
    "WORKLOAD",
    "WORKLOAD_ARGS",
    "N",
    "LOAD",
    "SCALE",
    "SEED",
    "CPUS",
    "OUT",
    "SANDBOX",
    "FIG",
];

/// Where things are.
#[derive(Debug, Clone)]
pub struct Places {
    /// The repository.
    pub root: PathBuf,
    /// Where measurements go, one folder for each setting.
    pub out: PathBuf,
    /// The traces of others, which need not be there.
    pub traces: PathBuf,
}

impl Places {
    /// The folder of a setting.
    pub fn folder(&self, setting: &Setting) -> PathBuf {
        self.out.join(&setting.name)
    }

    /// A program of this workspace.
    fn program(&self, name: &str) -> PathBuf {
        self.root.join("userspace/target/release").join(name)
    }
}

/// How a measurement went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All rows are clean.
    Clean,
    /// Some row says that its scheduler did not load or did not stay.
    Troubled,
    /// The user stopped it.
    Interrupted,
}

/// Measures what is missing of `setting`.
///
/// # Errors
/// If the trace cannot be made, or bench does not run.
pub fn measure(places: &Places, size: Size, setting: &Setting) -> Result<Outcome> {
    let folder = places.folder(setting);
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let mut bench = bench(places, setting);
    match &setting.source {
        Source::Generated {
            workload,
            load,
            scale,
            options,
        } => {
            bench.env("WORKLOAD", workload);
            bench.env("N", setting.invocations.to_string());
            bench.env("LOAD", load.to_string());
            bench.env("SCALE", scale.to_string());
            bench.env("SEED", size.seed.to_string());
            bench.env("WORKLOAD_ARGS", options);
        }
        Source::Fc { list, load, scale } => {
            let list = format!("fc-microbenchmark/workloads/{list}.txt");
            let list = places.traces.join(list);
            let trace = folder.join("fc.csv");
            convert(places, &list, setting, (*load, *scale), &trace)?;
            bench.env("TRACE", trace);
        }
    }
    let status = bench.status().context("cannot run scripts/bench")?;
    match status.code() {
        Some(0) => Ok(Outcome::Clean),
        Some(3) => Ok(Outcome::Troubled),
        Some(130 | 143) => Ok(Outcome::Interrupted),
        _ => bail!("scripts/bench failed on {}: {status}", setting.name),
    }
}

/// The command, all but the trace. It ends when this program is killed.
fn bench(places: &Places, setting: &Setting) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args(["--pdeathsig", "TERM", "scripts/bench"])
        .current_dir(&places.root);
    for name in OWN {
        command.env_remove(name);
    }
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("ARGS_") || text.starts_with("PROGRAM_") {
            command.env_remove(&name);
        }
    }
    let names: Vec<&str> = setting.rows.iter().map(|row| row.name).collect();
    command
        .env("SCHEDULERS", names.join(" "))
        .env("CPUS", setting.cpus.to_string())
        .env("OUT", places.folder(setting));
    for row in setting.rows.iter().filter(|row| !row.options.is_empty()) {
        command.env(variable(row), row.options);
    }
    command
}

/// The variable for a row's options, as scripts/bench names it.
fn variable(row: &Row) -> OsString {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = row.name.chars().map(plain).collect();
    format!("ARGS_{name}").into()
}

/// Converts the front of a list of fc-microbenchmark.
fn convert(
    places: &Places,
    list: &Path,
    setting: &Setting,
    (load, scale): (f64, f64),
    trace: &Path,
) -> Result<()> {
    let status = Command::new(places.program("faasbench"))
        .args(["convert", "fc", "--figure", "tfc"])
        .arg(list)
        .args(["--first", &setting.invocations.to_string()])
        .args(["--load", &load.to_string(), "--scale", &scale.to_string()])
        .args(["--cpus", &setting.cpus.to_string()])
        .arg("-o")
        .arg(trace)
        .status()
        .context("cannot run faasbench; run make first")?;
    if !status.success() {
        bail!("faasbench convert failed on {}", list.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::with;

    #[test]
    fn options_go_by_the_name_that_bench_looks_for() {
        let row = with("scx_sfs+no-overload", "--no-overload");
        assert_eq!(variable(&row), "ARGS_scx_sfs_no_overload");
    }

    #[test]
    fn a_bench_that_fails_is_an_error_and_exit_3_is_none() {
        let root = tempfile::tempdir().unwrap();
        let places = Places {
            root: root.path().into(),
            out: root.path().join("out"),
            traces: root.path().join("none"),
        };
        let size = Size {
            invocations: 5,
            headline: 5,
            cpus: 2,
            seed: 1,
        };
        let setting = Setting::table1(size, 0.5, &[with("scx_sfs+a", "-v")]);
        std::fs::create_dir(root.path().join("scripts")).unwrap();
        let bench = |body: &str| {
            use std::os::unix::fs::PermissionsExt;
            let path = root.path().join("scripts/bench");
            std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            measure(&places, size, &setting)
        };
        let check = "[ \"$SCHEDULERS $N $LOAD $CPUS $ARGS_scx_sfs_a\" = 'scx_sfs+a 5 0.5 2 -v' ]";
        assert_eq!(bench(check).unwrap(), Outcome::Clean);
        assert_eq!(bench("exit 3").unwrap(), Outcome::Troubled);
        assert_eq!(bench("exit 130").unwrap(), Outcome::Interrupted);
        let said = bench("exit 2").unwrap_err().to_string();
        assert!(said.contains("failed on table1-load0.50"), "{said}");
    }
}
