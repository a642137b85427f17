//! Checks before anything is loaded, so that a problem can be reported in one sentence.

use std::fs;
use std::path::Path;

use anyhow::{anyhow, bail, Context, Result};
use libbpf_rs::btf::Btf;
use libbpf_rs::{set_print, PrintLevel};
use nix::sys::utsname::uname;
use nix::unistd::geteuid;
use scx_utils::compat;
use tracing::{debug, info, warn};

use crate::exit::{Failure, Status};

const SCHED_EXT: &str = "/sys/kernel/sched_ext";
const STATE: &str = "/sys/kernel/sched_ext/state";
const ISOLATED: &str = "/sys/devices/system/cpu/isolated";
const NOHZ_FULL: &str = "/sys/devices/system/cpu/nohz_full";
const VMLINUX_BTF: &str = "/sys/kernel/btf/vmlinux";

/// The state of sched_ext while a scheduler is being unloaded.
const LEAVING: &str = "disabling";

/// Prefix of our scheduler's name in the kernel.
const OPS: &str = "sfs_";

/// Checks that this kernel and user can load the scheduler.
///
/// # Errors
///
/// The missing feature, and what to do.
pub fn check() -> Result<(), Failure> {
    check_kernel_and_user()?;
    check_no_other_scheduler()
}

fn check_kernel_and_user() -> Result<()> {
    if !Path::new(STATE).exists() {
        bail!(
            "this kernel ({}) has no sched_ext: boot one of version 6.16 or later with \
             CONFIG_SCHED_CLASS_EXT=y (kernel-config/check tells what a kernel lacks)",
            kernel_release()
        );
    }
    if !Path::new(VMLINUX_BTF).exists() {
        bail!(
            "this kernel ({}) has no type information in {VMLINUX_BTF}: boot one with \
             CONFIG_DEBUG_INFO_BTF=y",
            kernel_release()
        );
    }
    if !may_load()? {
        bail!(
            "loading a scheduler needs root, or the capabilities CAP_BPF and CAP_PERFMON: run \
             scx_sfs as root, or as the service that `make install` sets up"
        );
    }
    check_types()
}

/// Checks that the kernel's type information can be read, because the libraries that need it
/// panic otherwise.
fn check_types() -> Result<()> {
    set_print(Some((PrintLevel::Debug, log_libbpf)));
    let types = Btf::from_vmlinux();
    types.map(drop).with_context(|| {
        format!(
            "the kernel's type information in {VMLINUX_BTF} cannot be read (has something \
             been mounted there?)"
        )
    })
}

fn log_libbpf(_: PrintLevel, message: String) {
    debug!("{}", message.trim_end());
}

fn check_no_other_scheduler() -> Result<(), Failure> {
    let state = state()?;
    // The loader waits for a scheduler that is being unloaded.
    if state == "disabled" || state == LEAVING {
        return Ok(());
    }
    let ops = ops();
    let ops = match ops.as_str() {
        "" => "unknown",
        name => name,
    };
    Err(Failure {
        status: Status::Occupied,
        error: Some(anyhow!(
            "another sched_ext scheduler is loaded ({ops}, state {state}): stop it first"
        )),
    })
}

/// Returns the kernel's word for the state of sched_ext.
fn state() -> Result<String> {
    let state = fs::read_to_string(STATE).with_context(|| format!("cannot read {STATE}"))?;
    Ok(state.trim().to_owned())
}

/// Returns the name of the loaded scheduler, or an empty string.
fn ops() -> String {
    let ops = fs::read_to_string(format!("{SCHED_EXT}/root/ops"));
    ops.unwrap_or_default().trim().to_owned()
}

/// Returns whether a scheduler is being unloaded.
///
/// # Errors
///
/// The state of sched_ext cannot be read.
pub fn is_unloading() -> Result<bool> {
    Ok(state()? == LEAVING)
}

/// Checks that our scheduler is enabled in the kernel.
///
/// # Errors
///
/// The actual state, in words.
pub fn check_enabled() -> Result<(), String> {
    let state = state().map_err(|error| format!("{error:#}"))?;
    let ops = ops();
    if state == "enabled" && ops.starts_with(OPS) {
        return Ok(());
    }
    Err(format!("the kernel says {state} and {ops:?}"))
}

/// Returns whether this process may load BPF schedulers. The kernel requires capabilities,
/// whoever the user is.
fn may_load() -> Result<bool> {
    const CAP_PERFMON: u64 = 1 << 38;
    const CAP_BPF: u64 = 1 << 39;

    Ok(match capabilities()? {
        Some(mask) => {
            mask & CAP_SYS_ADMIN != 0 || mask & (CAP_BPF | CAP_PERFMON) == CAP_BPF | CAP_PERFMON
        }
        None => geteuid().is_root(),
    })
}

/// libbpf reads the types of modules only with this capability.
const CAP_SYS_ADMIN: u64 = 1 << 21;

/// Returns whether libbpf can look for functions in modules.
pub fn may_read_types_of_modules() -> bool {
    let capabilities = capabilities().ok().flatten();
    capabilities.is_some_and(|mask| mask & CAP_SYS_ADMIN != 0)
}

/// Returns this process's capability mask, if the kernel reports it.
fn capabilities() -> Result<Option<u64>> {
    let status =
        fs::read_to_string("/proc/self/status").context("cannot read /proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    Ok(line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()))
}

/// Returns the CPUs that the kernel's command line excludes from load balancing as a list of
/// ranges, or None.
pub fn isolated_cpus() -> Option<String> {
    cpus_in(ISOLATED)
}

/// Returns the list of CPUs in a kernel file, or None if it is empty.
fn cpus_in(file: &str) -> Option<String> {
    let cpus = fs::read_to_string(file).ok()?;
    let cpus = cpus.trim();
    // Without CPUs on the command line, nohz_full contains "(null)".
    (!cpus.is_empty() && cpus != "(null)").then(|| cpus.to_string())
}

/// Warns of effects of this kernel or its command line that an operator might not expect.
/// `partial`: scx_sfs schedules only tasks that ask for it.
pub fn warn_of_limits(partial: bool) {
    // A deadline server reserves a part of each CPU for sched_ext.
    if matches!(compat::struct_has_field("rq", "ext_server"), Ok(false)) {
        info!(
            "this kernel reserves no CPU time for sched_ext tasks (7.0 and later do): after 30 \
             s of real-time work on every CPU it ends scx_sfs"
        );
    }
    match cpus_in(NOHZ_FULL) {
        Some(cpus) if !partial => warn!(
            "nohz_full={cpus} has no effect on tasks of scx_sfs, the tick continues: leave \
             tasks that must run without it to the fair scheduler (--partial)"
        ),
        _ => {}
    }
}

/// Returns whether the kernel reports quotas to a scheduler (6.17 and later do).
///
/// # Errors
///
/// The kernel's type information cannot be read.
pub fn reports_quotas() -> Result<bool> {
    compat::struct_has_field("sched_ext_ops", "cgroup_set_bandwidth")
}

/// Returns the kernel's version as reported by uname.
pub fn kernel_release() -> String {
    uname().map_or_else(
        |_| "unknown".to_string(),
        |name| name.release().to_string_lossy().into_owned(),
    )
}
