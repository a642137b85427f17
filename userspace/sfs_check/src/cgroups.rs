//! Cgroups: whether they are those of version 2, which are sandboxes, and which have quotas.

use std::path::Path;

use sfs_cgroups::quota::first_with_quota;

use crate::{version_of, Finding, Machine, Wanted};

/// The first kernel that reports quotas to a scheduler.
const REPORTS_QUOTAS: (u32, u32) = (6, 17);

/// More sandboxes than this are not counted.
const MOST: usize = 100_000;

/// Fewer watches than this may be used up by other programs.
const LEAST_WATCHES: u64 = 8192;

pub(crate) fn examine(machine: &Machine, wanted: &Wanted) -> Vec<Finding> {
    let mut findings = vec![hierarchy(machine, wanted), quotas(machine, wanted)];
    findings.extend(wanted.cgroups.iter().map(|(text, pattern)| {
        let found = pattern.count(&machine.cgroup_root(), MOST);
        sandboxes(text, found)
    }));
    if !wanted.cgroups.is_empty() {
        findings.push(watches(machine));
    }
    findings
}

/// Checks that cgroup v2 is at its place, with the CPU controller.
fn hierarchy(machine: &Machine, wanted: &Wanted) -> Finding {
    const CHECK: &str = "cgroups";
    const ROOT: &str = sfs_cgroups::CGROUP_ROOT;
    let Some(controllers) = machine.read(&format!("{ROOT}/cgroup.controllers")) else {
        let found = format!("cgroup v2 is not mounted at {ROOT}");
        let remedy = format!(
            "boot with systemd.unified_cgroup_hierarchy=1, or mount -t cgroup2 none {ROOT}"
        );
        // Without sandboxes nothing needs it.
        return match wanted.cgroups.is_empty() {
            true => Finding::warn(CHECK, format!("{found}: weights have no effect"), remedy),
            false => Finding::fail(
                CHECK,
                format!("{found}, which the key cgroup needs"),
                remedy,
            ),
        };
    };
    let has_cpu = |text: &str| text.split_whitespace().any(|name| name == "cpu");
    if !has_cpu(&controllers) {
        return Finding::warn(
            CHECK,
            "version 2, without the CPU controller: cpu.weight and cpu.max have no effect",
            "boot without cgroup_disable=cpu, and with CONFIG_CGROUP_SCHED=y",
        );
    }
    let below = machine.read(&format!("{ROOT}/cgroup.subtree_control"));
    if !has_cpu(&below.unwrap_or_default()) {
        return Finding::warn(
            CHECK,
            "version 2, with the CPU controller, but no cgroup uses it: all tasks are one tenant \
             unless the key cgroup names sandboxes",
            format!("echo +cpu >{ROOT}/cgroup.subtree_control, or CPUWeight= in a unit"),
        );
    }
    Finding::ok(CHECK, "version 2, with the CPU controller")
}

fn quotas(machine: &Machine, wanted: &Wanted) -> Finding {
    const CHECK: &str = "quotas";
    let release = machine
        .read("/proc/sys/kernel/osrelease")
        .unwrap_or_default();
    if version_of(&release).is_none_or(|version| version >= REPORTS_QUOTAS) {
        return Finding::ok(CHECK, "the kernel reports cpu.max to a scheduler");
    }
    let found = first_with_quota(&machine.cgroup_root());
    let remedy = "boot a kernel of version 6.17 or later, or remove the quota; with \
                  ignore-quotas = true the cgroup may use the whole machine";
    match found {
        None => Finding::warn(
            CHECK,
            "this kernel reports no quotas (cpu.max) to a scheduler: scx_sfs ends when a cgroup \
             has one",
            "boot a kernel of version 6.17 or later if tenants have quotas",
        ),
        Some(group) if wanted.ignore_quotas => Finding::warn(
            CHECK,
            format!("the quota of {} is not enforced", plain(&group)),
            remedy,
        ),
        Some(group) => Finding::fail(
            CHECK,
            format!(
                "{} has a quota, which this kernel does not report",
                plain(&group)
            ),
            remedy,
        ),
    }
}

/// The name of a cgroup without what could forge a line.
fn plain(group: &str) -> String {
    group.escape_debug().to_string()
}

fn sandboxes(pattern: &str, found: usize) -> Finding {
    const CHECK: &str = "sandboxes";
    let pattern = plain(pattern);
    match found {
        0 => Finding::warn(
            CHECK,
            format!("no cgroup matches {pattern} now"),
            "fine if no sandbox runs yet; otherwise compare the pattern with the third field of \
             /proc/PID/cgroup of a function",
        ),
        MOST => Finding::ok(CHECK, format!("{MOST} cgroups or more match {pattern}")),
        found => Finding::ok(CHECK, format!("{found} cgroups match {pattern}")),
    }
}

fn watches(machine: &Machine) -> Finding {
    const CHECK: &str = "inotify";
    const FILE: &str = "/proc/sys/fs/inotify/max_user_watches";
    let text = machine.read(FILE).unwrap_or_default();
    match text.parse::<u64>() {
        Ok(watches) if watches < LEAST_WATCHES => Finding::warn(
            CHECK,
            format!("{watches} watches, of which each folder with sandboxes needs one"),
            format!("sysctl fs.inotify.max_user_watches={}", 8 * LEAST_WATCHES),
        ),
        Ok(watches) => Finding::ok(CHECK, format!("{watches} watches")),
        Err(_) => Finding::warn(
            CHECK,
            format!("{} cannot be read", Path::new(FILE).display()),
            "mount procfs at /proc",
        ),
    }
}
