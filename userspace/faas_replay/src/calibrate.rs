//! How long fixed work takes alone on this machine, before a replay.
//!
//! A process of its own is pinned to one CPU, with real-time priority, so that
//! it is alone there whatever else runs. It forks a process for each sample, as
//! the dispatcher does for an invocation, and reads that one's CPU time when it
//! has ended, as the dispatcher does.

use super::child::{exit, EndOnPanic};
use super::cpus;
use super::fork::fork;
use super::realtime::{ChildPolicy, HOW_TO_PERMIT};
use super::setup::CALIBRATE;
use super::wait::wait4;
use crate::board::State;
use anyhow::{bail, Context, Result};
use faas_data::fixed::Kernel;
use faas_fixed::bodies::Bodies;
use faas_fixed::calibration::{calibrate, Calibrated};
use nix::errno::Errno;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::process::{Command, ExitCode, Stdio};

/// What the process is to measure.
#[derive(Debug, Serialize, Deserialize)]
struct Order {
    /// The numbers of the kinds of work.
    kernels: Vec<usize>,
    /// Whether the other CPUs are to be busy.
    busy: bool,
    /// How much the measurements may vary, in per cent.
    limit: u32,
}

/// What a calibration has found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The CPU that it was pinned to.
    pub cpu: u32,
    /// Number of other CPUs that were kept busy.
    pub beside: u32,
    /// What work takes alone.
    pub calibrated: Calibrated,
}

/// Measures what `kernels` take alone. With `busy`, all other CPUs that this
/// process may use execute no-operation instructions meanwhile: emulated CPUs
/// share one stream of instructions, so work is as slow as that makes it. The
/// interquartile range of measurements may be `limit` per cent of their median.
///
/// # Errors
/// If real-time priority is not permitted, there is no memory for a working
/// set, or the measurements vary too much.
pub fn measure(kernels: &[Kernel], busy: bool, limit: u32) -> Result<Report> {
    let order = Order {
        kernels: kernels.iter().map(|kernel| kernel.number()).collect(),
        busy,
        limit,
    };
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let output = Command::new(program)
        .args([CALIBRATE, &serde_json::to_string(&order)?])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start the calibration of fixed work")?;
    if !output.status.success() {
        bail!("the calibration of fixed work ended with {}", output.status);
    }
    let answer: Result<Report, String> = serde_json::from_slice(&output.stdout)
        .context("the calibration of fixed work gave no answer")?;
    answer.map_err(anyhow::Error::msg)
}

/// Does what the order in `text` says; the answer is on standard output.
pub fn main(text: &str) -> ExitCode {
    let Ok(order) = serde_json::from_str(text) else {
        return ExitCode::from(2);
    };
    let answer = carry_out(&order);
    match serde_json::to_writer(std::io::stdout(), &answer) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn carry_out(order: &Order) -> Result<Report, String> {
    // Nobody would read the answer.
    let _ = set_pdeathsig(Signal::SIGKILL);
    let cpus = cpus::usable().map_err(|errno| format!("cannot count the CPUs: {errno}"))?;
    let Some((own, others)) = cpus.split_first() else {
        return Err("no CPU can be used".to_string());
    };
    let company = match order.busy {
        true => Company::begin(others)?,
        false => Company::default(),
    };
    cpus::confine(&[*own])
        .map_err(|errno| format!("cannot pin the calibration to a CPU: {errno}"))?;
    let permitted = ChildPolicy::Fifo.apply(0);
    permitted.map_err(|errno| format!("{HOW_TO_PERMIT} ({errno})"))?;
    let known = |number: &usize| Kernel::ALL.get(*number).copied();
    let kernels: Vec<Kernel> = order.kernels.iter().filter_map(known).collect();
    let calibrated =
        calibrate(&kernels, order.limit, sample).map_err(|problem| problem.to_string())?;
    Ok(Report {
        cpu: *own as u32,
        beside: company.0.len() as u32,
        calibrated,
    })
}

/// CPU time in ns of a process that does `count` iterations of a kernel.
fn sample(kernel: Option<Kernel>, count: u64) -> Result<u64, String> {
    match fork() {
        Ok(0) => {
            let _guard = EndOnPanic;
            exit(work(kernel, count))
        }
        Ok(pid) => loop {
            match wait4(0) {
                Ok(Some((ended, state, usage))) if ended == pid => {
                    return match state {
                        State::Exited(0) => Ok(usage.cpu_us * 1000),
                        State::Exited(code) => Err(Errno::from_raw(code as i32).to_string()),
                        other => Err(format!("a process ended with {other:?}")),
                    };
                }
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(format!("cannot wait for a process: {errno}")),
            }
        },
        Err(errno) => Err(format!("cannot fork: {errno}")),
    }
}

/// What the process of a sample does; returns its exit code, an errno.
fn work(kernel: Option<Kernel>, count: u64) -> i32 {
    let Some(kernel) = kernel else {
        return 0;
    };
    let mut bodies = Bodies::default();
    match bodies.make(kernel).and_then(|()| bodies.run(kernel, count)) {
        Ok(value) => {
            black_box(value);
            0
        }
        Err(_) => Errno::ENOMEM as i32,
    }
}

/// Processes that keep CPUs busy, and end with this.
#[derive(Debug, Default)]
struct Company(Vec<libc::pid_t>);

impl Company {
    /// One on each of `cpus`.
    fn begin(cpus: &[usize]) -> Result<Self, String> {
        let mut company = Self::default();
        for cpu in cpus {
            match fork() {
                Ok(0) => keep_busy(*cpu),
                Ok(pid) => company.0.push(pid),
                Err(errno) => return Err(format!("cannot fork: {errno}")),
            }
        }
        Ok(company)
    }
}

impl Drop for Company {
    fn drop(&mut self) {
        for pid in &self.0 {
            let _ = kill(Pid::from_raw(*pid), Signal::SIGKILL);
        }
        for _ in &self.0 {
            let _ = wait4(0);
        }
    }
}

/// Executes no-operation instructions on this CPU until it is killed.
fn keep_busy(cpu: usize) -> ! {
    let _guard = EndOnPanic;
    let _ = set_pdeathsig(Signal::SIGKILL);
    if cpus::confine(&[cpu]).is_err() {
        exit(1);
    }
    loop {
        faas_noops::pass(1000);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_that_cannot_be_read_is_no_panic() {
        assert_eq!(
            format!("{:?}", main("x")),
            format!("{:?}", ExitCode::from(2))
        );
    }
}
