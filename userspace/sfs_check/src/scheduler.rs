//! Schedulers that are loaded, and services that would load another one.

use crate::{Finding, Machine};

/// Prefix of scx_sfs's name in the kernel.
const OURS: &str = "sfs_";

/// Units of other programs that load schedulers.
const OTHERS: [&str; 2] = ["scx.service", "scx_loader.service"];

/// Where systemd has the links of enabled units.
const WANTS: &str = "/etc/systemd/system/multi-user.target.wants";

pub(crate) fn examine(machine: &Machine) -> Vec<Finding> {
    vec![loaded(machine), enabled(machine)]
}

fn loaded(machine: &Machine) -> Finding {
    const CHECK: &str = "scheduler";
    let state = machine.read("/sys/kernel/sched_ext/state");
    let ops = machine.read("/sys/kernel/sched_ext/root/ops");
    let name = ops.unwrap_or_else(|| "unknown".to_owned());
    match state.as_deref() {
        None => Finding::ok(CHECK, "none is loaded, for want of sched_ext"),
        Some("disabled") => Finding::ok(CHECK, "no sched_ext scheduler is loaded"),
        Some("disabling") => Finding::ok(CHECK, "one is being unloaded; scx_sfs waits for it"),
        Some("enabled") if name.starts_with(OURS) => {
            Finding::ok(CHECK, format!("scx_sfs is loaded ({name})"))
        }
        Some(state) => Finding::fail(
            CHECK,
            format!("another sched_ext scheduler is loaded ({name}, state {state})"),
            "stop it first: systemctl stop scx scx_loader, or Ctrl-C where it was started",
        ),
    }
}

fn enabled(machine: &Machine) -> Finding {
    const CHECK: &str = "other services";
    // A link may point to a unit that does not exist on the machine under test.
    let is_wanted = |unit: &&&str| machine.path(&format!("{WANTS}/{unit}")).is_symlink();
    let found: Vec<&str> = OTHERS.iter().filter(is_wanted).copied().collect();
    let ours = machine
        .path(&format!("{WANTS}/scx_sfs.service"))
        .is_symlink();
    match found.as_slice() {
        [] => Finding::ok(CHECK, "no service is enabled that loads another scheduler"),
        found if ours => Finding::warn(
            CHECK,
            format!(
                "{} is enabled beside scx_sfs.service: the last one to start wins",
                found.join(" and ")
            ),
            format!("systemctl disable {}", found.join(" ")),
        ),
        found => Finding::ok(
            CHECK,
            format!(
                "{} is enabled, and scx_sfs.service is not",
                found.join(" and ")
            ),
        ),
    }
}
