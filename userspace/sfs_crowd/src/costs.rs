//! The cost of BPF programs, from the kernel's BPF statistics.
//!
//! A mean alone misleads in a virtual machine in virtual time: when the emulator switches to
//! another CPU in the middle of a call, or while another CPU holds a lock that the call needs,
//! the work of the other CPUs is counted too. So the statistics are read in short windows, most
//! of which contain no such switch. The median of the windows' means is the typical cost.

use std::ffi::CStr;
use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use libbpf_sys::{
    bpf_obj_get_info_by_fd, bpf_prog_get_fd_by_id, bpf_prog_get_next_id, bpf_prog_info,
};

use crate::system::{now, sleep_until};

/// A window: long enough for some calls, and short enough to contain no switch of the emulator.
const WINDOW: Duration = Duration::from_micros(200);

/// Switch of the kernel's statistics.
const SWITCH: &str = "/proc/sys/kernel/bpf_stats_enabled";

/// Prints the cost of the programs whose names begin with `prefix`, over `seconds`.
///
/// # Errors
///
/// There are no such programs, the kernel has no statistics, or the result cannot be written.
pub fn run(prefix: &str, seconds: u32) -> Result<()> {
    fs::write(SWITCH, "1").with_context(|| format!("cannot write {SWITCH}"))?;
    let mut programs = find(prefix)?;
    ensure!(!programs.is_empty(), "no BPF program is called {prefix}*");
    let end = now() + Duration::from_secs(seconds.into());
    let mut next = now();
    while next < end {
        next += WINDOW;
        sleep_until(next);
        for one in &mut programs {
            one.look()?;
        }
    }
    let mut out = io::stdout().lock();
    for one in &mut programs {
        let (calls, mean) = one.mean();
        let typical = one.typical();
        writeln!(out, "{} {calls} {mean:.0} {typical:.0}", one.name)?;
    }
    Ok(())
}

/// A program and its statistics so far.
struct Program {
    fd: OwnedFd,
    name: String,
    first: Used,
    last: Used,
    /// Mean ns of a call, of each window with calls.
    windows: Vec<f64>,
}

/// CPU time and calls of a program since it was loaded.
#[derive(Clone, Copy)]
struct Used {
    ns: u64,
    calls: u64,
}

impl Used {
    fn of(info: &bpf_prog_info) -> Self {
        Self {
            ns: info.run_time_ns,
            calls: info.run_cnt,
        }
    }

    /// Returns the calls since `earlier`, and the mean ns of one.
    fn since(self, earlier: Self) -> (u64, f64) {
        let calls = self.calls - earlier.calls;
        (calls, (self.ns - earlier.ns) as f64 / calls.max(1) as f64)
    }
}

impl Program {
    fn look(&mut self) -> Result<()> {
        let used = Used::of(&info_of(&self.fd)?);
        let (calls, mean) = used.since(self.last);
        if calls > 0 {
            self.windows.push(mean);
        }
        self.last = used;
        Ok(())
    }

    fn mean(&self) -> (u64, f64) {
        self.last.since(self.first)
    }

    /// Returns the median of the windows in ns, 0 without any.
    fn typical(&mut self) -> f64 {
        self.windows.sort_by(f64::total_cmp);
        let middle = self.windows.len() / 2;
        self.windows.get(middle).copied().unwrap_or(0.0)
    }
}

/// Returns the programs whose names begin with `prefix`.
fn find(prefix: &str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    let mut id = 0;
    // SAFETY: `id` outlives the call.
    while unsafe { bpf_prog_get_next_id(id, &raw mut id) } == 0 {
        // SAFETY: takes a plain number.
        let fd = unsafe { bpf_prog_get_fd_by_id(id) };
        if fd < 0 {
            continue; // unloaded meanwhile
        }
        // SAFETY: the descriptor is new, and nothing else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let info = info_of(&fd)?;
        // SAFETY: the kernel ends the name with a 0.
        let name = unsafe { CStr::from_ptr(info.name.as_ptr()) }.to_string_lossy();
        if name.starts_with(prefix) {
            let used = Used::of(&info);
            programs.push(Program {
                fd,
                name: name.into_owned(),
                first: used,
                last: used,
                windows: Vec::new(),
            });
        }
    }
    programs.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(programs)
}

fn info_of(fd: &OwnedFd) -> Result<bpf_prog_info> {
    // SAFETY: zeroes are valid for all fields, and ask for no lists.
    let mut info: bpf_prog_info = unsafe { std::mem::zeroed() };
    let mut length = u32::try_from(size_of::<bpf_prog_info>())?;
    let place = (&raw mut info).cast();
    // SAFETY: `info` is as long as `length` says; both outlive the call.
    let error = unsafe { bpf_obj_get_info_by_fd(fd.as_raw_fd(), place, &raw mut length) };
    ensure!(
        error == 0,
        "cannot get information about a BPF program: {}",
        io::Error::last_os_error()
    );
    Ok(info)
}
