//! The installation, which all parts begin with.

use std::fs;
use std::process::Command;

use anyhow::{bail, Context, Result};

use super::checks::Check;
use super::service::{expect, output, succeed};
use crate::part::PLACE;

/// The check.
pub const CHECK: Check = Check {
    name: "the unit is installed, and systemd knows each of its lines",
    run: installs,
};

/// Where drop-ins of the unit are.
const DROP_INS: &str = "/etc/systemd/system/scx_sfs.service.d";

/// The service that is told of failures, and the file that it makes.
const TOLD_SERVICE: &str = "/etc/systemd/system/told.service";
pub(super) const TOLD: &str = "/run/told";

fn installs() -> Result<()> {
    let mut install = Command::new(format!("{PLACE}/packaging/install.sh"));
    install.env("BUILD_DIR", format!("{PLACE}/built"));
    succeed(install.arg("install"))?;
    fs::create_dir_all(DROP_INS).with_context(|| format!("cannot make {DROP_INS}"))?;
    write(
        &format!("{DROP_INS}/told.conf"),
        "[Unit]\nOnFailure=told.service\n",
    )?;
    let service = format!("[Service]\nType=oneshot\nExecStart=/bin/touch {TOLD}\n");
    write(TOLD_SERVICE, &service)?;
    succeed(Command::new("systemctl").arg("daemon-reload"))?;
    // systemd reads a unit, and complains about it, when somebody asks for it.
    expect("LoadState", "loaded")?;
    succeed(Command::new("journalctl").arg("--sync"))?;
    let journal = output(Command::new("journalctl").args(["-b", "--no-pager"]))?;
    match journal.lines().find(|line| is_complaint(line)) {
        Some(line) => bail!("{line}"),
        None => Ok(()),
    }
}

fn write(path: &str, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {path}"))
}

/// Whether systemd says in this line of the journal that it does not know a line of the unit.
fn is_complaint(line: &str) -> bool {
    let about = line.split_once("scx_sfs.service").map(|(_, about)| about);
    about.is_some_and(|about| about.contains("Unknown") || about.contains("Failed to parse"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_about_the_unit_are_found() {
        for line in [
            "systemd[1]: /usr/local/lib/systemd/system/scx_sfs.service:3: Unknown key name 'X'",
            "systemd[1]: /etc/systemd/system/scx_sfs.service.d/told.conf:2: Failed to parse Y=z",
        ] {
            assert!(is_complaint(line), "{line}");
        }
        for line in [
            "systemd[1]: /etc/systemd/system/other.service:3: Unknown key name 'X'",
            "systemd[1]: Unknown: scx_sfs.service is not loaded",
            "systemd[1]: Started scx_sfs.service - SFS",
        ] {
            assert!(!is_complaint(line), "{line}");
        }
    }
}
