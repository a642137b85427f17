//! One platform under all schedulers.

use crate::guests::{Guests, Own};
use crate::platform::Platform;
use crate::rows::{self, Row};
use crate::settings::Settings;
use crate::{python, say, succeed, trace};
use anyhow::{Context, Result};
use sfs_jobs::failure::{refuse, Failure};
use sfs_jobs::signals::Interrupt;
use sfs_jobs::tree::Tree;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs the platform under each scheduler, prints the comparison and writes the report.
/// `variables` are for the guest's script.
///
/// # Errors
/// If a setting makes no sense, if a program is missing or fails, or if a scheduler gave no
/// clean run; and [`Failure::Interrupted`].
pub fn run(
    tree: &Tree,
    platform: &Platform,
    settings: &Settings,
    variables: Vec<(&'static str, OsString)>,
    interrupt: &Interrupt,
) -> Result<()> {
    let own = Own::find(tree, platform, variables)?;
    let rows = rows::rows(tree, platform, &settings.schedulers, |name| {
        std::env::var_os(name)
    })?;
    let default = || tree.at("out/platforms").join(platform.name);
    let out = &settings.out.clone().unwrap_or_else(default);
    make_folder(out, &rows)?;
    if settings.kernel.is_none() {
        let mut fetch = Command::new(tree.at("vm/fetch"));
        succeed("vm/fetch", fetch.stdout(Stdio::null()), interrupt)?;
    }
    let python = &python::archive(tree, &settings.python, interrupt)?;
    let trace = &out.join("trace.csv");
    let functions = &trace::make(tree, settings, trace)?;
    let guests = Guests {
        tree,
        interrupt,
        platform,
        settings,
        own,
        out,
        python,
        trace,
        functions,
    };
    let failed = guests.run(&rows)?;
    report(&guests, &rows)?;
    match failed {
        0 => Ok(()),
        _ => Err(Failure::Vm(format!(
            "{failed} of the schedulers gave no clean run; see above"
        ))
        .into()),
    }
}

/// Makes the folder of the results, without results of these rows.
fn make_folder(out: &Path, rows: &[Row]) -> Result<()> {
    if let Err(error) = fs::create_dir_all(out) {
        let out = out.display();
        refuse!("cannot make the folder OUT={out}: {error}; choose another");
    }
    for name in ["summary.json", "report.html", "trace.csv"] {
        remove(&out.join(name))?;
    }
    for Row { name, .. } in rows {
        remove(&out.join(name))?;
        for kind in ["csv", "json", "console"] {
            remove(&out.join(format!("{name}.{kind}")))?;
        }
    }
    Ok(())
}

/// Removes a file, or a folder with all that it has, if it is there.
fn remove(path: &Path) -> Result<()> {
    let removed = match path.symlink_metadata() {
        Ok(data) if data.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    };
    removed.with_context(|| format!("cannot remove {}", path.display()))
}

/// Has the table printed, and the page written.
fn report(guests: &Guests, rows: &[Row]) -> Result<()> {
    let (tree, out) = (guests.tree, guests.out);
    let summaries = rows
        .iter()
        .map(|row| out.join(format!("{}.json", row.name)));
    let summaries: Vec<_> = summaries.filter(|path| path.exists()).collect();
    if summaries.is_empty() {
        return Err(Failure::Vm(format!(
            "no scheduler gave a result; {} has the consoles and what the platforms said",
            out.display()
        ))
        .into());
    }
    let mut command = Command::new(tree.at(tree.program("faasbench")));
    command.args(["report", "--out"]).arg(out).args(summaries);
    succeed("faasbench report", &mut command, guests.interrupt)?;
    say(
        guests.platform.name,
        &format!(
            "results are in {}: summary.json, report.html, a .csv for each row, and its logs in a folder",
            out.display()
        ),
    );
    Ok(())
}
