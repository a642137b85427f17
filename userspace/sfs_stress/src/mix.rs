//! The mixes of load.

use std::fmt::{self, Display, Formatter};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{bail, ensure, Context, Result};
use clap::ValueEnum;
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;

use crate::note;
use sfs_testbed::clock::sleep;
use sfs_testbed::scheduler::{state, wait_until_disabled, Scheduler};

const SCX_SFS: &str = "/bin/scx_sfs";

/// In the mix `kills` the loader lives for up to this time: it opens, loads, attaches, runs.
const LIVES: Duration = Duration::from_secs(6);

/// How much of it.
pub struct Settings {
    /// CPUs of the guest.
    pub cpus: usize,
    /// Seconds for a mix of stress-ng.
    pub seconds: u32,
    /// Cycles of the mixes that load and unload.
    pub cycles: u32,
    /// Options of scx_sfs.
    pub arguments: Vec<String>,
}

/// A mix of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mix {
    /// CPU hogs and forks, with what stress-ng calls aggressive
    Aggressive,
    /// Processes that change their affinity at random
    Affinity,
    /// Forks, vforks and clones
    Fork,
    /// Real-time threads, and threads that change their scheduling class
    Cyclic,
    /// Sockets, pipes, futexes and message queues
    Messages,
    /// Groups of processes that exchange messages, under EEVDF and under scx_sfs
    Groups,
    /// Memory pressure, with processes that the kernel kills
    Memory,
    /// scx_sfs is loaded and unloaded, again and again
    Cycles,
    /// The loader is killed, each time at another moment of its life
    Kills,
}

impl Display for Mix {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let value = self.to_possible_value().expect("no mix is hidden");
        f.write_str(value.get_name())
    }
}

impl Mix {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Aggressive,
        Self::Affinity,
        Self::Fork,
        Self::Cyclic,
        Self::Messages,
        Self::Groups,
        Self::Memory,
        Self::Cycles,
        Self::Kills,
    ];

    /// Runs the mix.
    ///
    /// # Errors
    ///
    /// A program fails, or scx_sfs does not stay, or does not leave.
    pub fn run(self, settings: &Settings) -> Result<()> {
        match self {
            Self::Groups => exchange_groups(settings),
            Self::Cycles => load_and_unload(settings),
            Self::Kills => kill_again_and_again(settings),
            _ => self.under_scx_sfs(settings),
        }
    }

    /// Runs stress-ng under scx_sfs.
    fn under_scx_sfs(self, settings: &Settings) -> Result<()> {
        let scheduler = load(settings)?;
        let output = stress_ng(self, settings)
            .args(["--timeout", &settings.seconds.to_string(), "--oomable"])
            .output()
            .context("cannot run stress-ng")?;
        let enabled = state();
        scheduler.finish()?;
        ensure!(
            enabled == "enabled",
            "sched_ext is {enabled} at the end of the mix"
        );
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().last().unwrap_or_default();
        ensure!(
            output.status.success(),
            "stress-ng ended ({}): {last}",
            output.status
        );
        Ok(())
    }

    /// Returns the stressors of stress-ng, with their instances for a machine of `cpus` CPUs.
    fn stressors(self, cpus: usize) -> Vec<(&'static str, String)> {
        let some = |factor: usize| (cpus * factor).to_string();
        let flag = String::new();
        match self {
            Self::Aggressive => vec![
                ("--aggressive", flag.clone()),
                ("--cpu", some(1)),
                ("--fork", some(1)),
                ("--maximize", flag),
            ],
            Self::Affinity => vec![
                ("--affinity", some(2)),
                ("--affinity-rand", flag),
                ("--cpu", some(1)),
            ],
            Self::Fork => vec![
                ("--fork", some(4)),
                ("--vfork", some(1)),
                ("--clone", some(1)),
                ("--clone-max", "64".to_owned()),
            ],
            Self::Cyclic => vec![
                ("--cyclic", "1".to_owned()),
                ("--cyclic-policy", "fifo".to_owned()),
                ("--schedpolicy", some(1)),
                ("--cpu", some(1)),
            ],
            Self::Messages => ["--sockpair", "--pipe", "--switch", "--futex", "--mq"]
                .map(|stressor| (stressor, some(1)))
                .to_vec(),
            Self::Memory => vec![
                ("--vm", some(1)),
                ("--vm-bytes", "90%".to_owned()),
                ("--fork", some(1)),
            ],
            // The load beside these.
            Self::Groups | Self::Cycles | Self::Kills => {
                vec![("--cpu", some(1)), ("--fork", some(1))]
            }
        }
    }
}

fn stress_ng(mix: Mix, settings: &Settings) -> Command {
    let mut command = Command::new("stress-ng");
    command
        .args(["--temp-path", "/tmp", "--quiet"])
        .stdin(Stdio::null());
    for (stressor, value) in mix.stressors(settings.cpus) {
        command.arg(stressor);
        if !value.is_empty() {
            command.arg(value);
        }
    }
    command
}

fn load(settings: &Settings) -> Result<Scheduler> {
    let arguments: Vec<_> = settings.arguments.iter().map(String::as_str).collect();
    Scheduler::start(Path::new(SCX_SFS), &arguments)
}

/// Load by stress-ng until this value is dropped.
struct Load(Child);

impl Load {
    fn start(mix: Mix, settings: &Settings) -> Result<Self> {
        let child = stress_ng(mix, settings).stdout(Stdio::null()).spawn();
        Ok(Self(child.context("cannot start stress-ng")?))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // Its children end with it. If it has ended by itself, there is nothing to do.
        let _ = kill(Pid::from_raw(self.0.id().cast_signed()), Signal::SIGTERM);
        let _ = self.0.wait();
    }
}

/// The same work under EEVDF and under scx_sfs.
fn exchange_groups(settings: &Settings) -> Result<()> {
    let before = exchange(settings)?;
    let scheduler = load(settings)?;
    let after = exchange(settings)?;
    let enabled = state();
    scheduler.finish()?;
    ensure!(
        enabled == "enabled",
        "sched_ext is {enabled} after the messages"
    );
    note(format_args!(
        "ms: {before} under EEVDF, {after} under scx_sfs"
    ));
    Ok(())
}

/// Groups of processes send each other messages. Returns the milliseconds as printed.
fn exchange(settings: &Settings) -> Result<String> {
    let output = Command::new("sfs_crowd")
        .args(["messages", "--pairs", "8"])
        .args(["--groups", &settings.cpus.to_string()])
        .args(["--messages", &(settings.seconds * 8).to_string()])
        .output()
        .context("cannot run sfs_crowd")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "sfs_crowd ended ({}): {}",
        output.status,
        said.trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn load_and_unload(settings: &Settings) -> Result<()> {
    let _load = Load::start(Mix::Cycles, settings)?;
    for cycle in 0..settings.cycles {
        let scheduler = load(settings).with_context(|| format!("cycle {cycle}"))?;
        scheduler
            .finish()
            .with_context(|| format!("cycle {cycle}"))?;
    }
    note(format_args!("{} cycles", settings.cycles));
    Ok(())
}

/// Kills the loader at another moment each time. The kernel's own scheduler must be back then.
fn kill_again_and_again(settings: &Settings) -> Result<()> {
    let _load = Load::start(Mix::Kills, settings)?;
    let mut enabled = 0;
    for time in 0..settings.cycles {
        let mut loader = Command::new(SCX_SFS)
            .args(&settings.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start scx_sfs")?;
        sleep(LIVES * time / settings.cycles);
        enabled += u32::from(state() == "enabled");
        if let Some(status) = loader.try_wait()? {
            bail!("scx_sfs ended by itself ({status})");
        }
        loader.kill()?;
        loader.wait()?;
        wait_until_disabled().with_context(|| format!("kill {time}"))?;
    }
    note(format_args!(
        "{} times, {enabled} of them enabled already",
        settings.cycles
    ));
    Ok(())
}
