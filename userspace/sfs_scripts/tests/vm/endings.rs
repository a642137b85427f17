//! Guests that end badly, and other accelerators.

use crate::guest;
use nix::unistd::{access, AccessFlags};
use sfs_scripts::top;
use sfs_skip::skip;

#[test]
fn a_panic_is_an_error_and_the_console_is_shown() {
    let said = guest(&[
        "--cpus",
        "1",
        "--",
        "sh",
        "-c",
        "echo c >/proc/sysrq-trigger",
    ]);
    said.ended(125, "the guest's kernel panicked");
    said.ended(125, "sysrq triggered crash");
}

#[test]
fn a_missing_exit_status_is_an_error() {
    guest(&["--cpus", "1", "--", "poweroff", "-f"]).ended(125, "without the command's exit status");
}

#[test]
fn the_time_limit_ends_a_guest() {
    let arguments = ["--cpus", "1", "--timeout", "3", "--", "sleep", "1000000"];
    guest(&arguments).ended(124, "did not end within 3 seconds");
}

/// The kernel that is run must itself pass the check of its configuration.
#[test]
fn several_host_threads_run_the_check_inside() {
    let [check, config] = ["check", "scx_sfs.config"]
        .map(|name| top().join("kernel-config").join(name).display().to_string());
    let command = "echo accel $VM_ACCEL; check --running";
    let arguments = [
        "--accel", "tcg", "--in", &check, "--in", &config, "--", "sh", "-c", command,
    ];
    guest(&arguments).ended(0, "accel tcg");
}

/// Where KVM is there but does not work, that is what is said.
#[test]
fn kvm() {
    if access("/dev/kvm", AccessFlags::W_OK).is_err() {
        skip!("no /dev/kvm here");
    }
    let said = guest(&["--accel", "kvm", "--", "true"]);
    if said.status != 0 {
        said.ended(said.status, "KVM does not run this kernel here");
    }
}
