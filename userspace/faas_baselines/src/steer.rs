//! The daemon of `renice`, `idle` and `sfs-user`: a [`Rule`] with its eyes and hands.
//!
//! It is a process of its own, with one thread and a real-time priority above all functions
//! and below the dispatcher, and on the same CPUs as the functions: what it costs is in the
//! measurement. Functions are the processes that children of its own parent fork (the
//! dispatcher, or the keeper of sandboxes). It ends when its standard input is closed, and
//! prints what it has done.

use crate::events::{Event, Events, Read};
use crate::name::Base;
use crate::rule::demoter::{self, Demoter};
use crate::rule::original::{self, Original};
use crate::rule::{slice, Class, Look, Order, Pid, Rule, Seen};
use crate::STEER;
use anyhow::{anyhow, bail, Context, Result};
use faas_data::summary::machine::Daemon;
use faas_replay::attributes::Attributes;
use faas_replay::clock::monotonic_ns;
use faas_replay::realtime::{pin, HELPER_PRIORITY};
use nix::errno::Errno;
use nix::poll::{ppoll, PollFd, PollFlags};
use nix::sys::time::TimeSpec;
use nix::time::{clock_getcpuclockid, clock_gettime, ClockId};
use nix::unistd::Pid as NixPid;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdout, Command, ExitCode, ExitStatus, Stdio};
use std::time::Duration;

/// The daemon's real-time priority: below those of the replay.
const PRIORITY: i32 = HELPER_PRIORITY - 9;

/// The answer of the daemon once it sees new processes.
const READY: &str = "ready\n";

/// What a daemon is to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Which one.
    pub base: Base,
    /// CPUs that the functions have.
    pub cpus: u32,
    /// Number of CPUs to restrict it to, 0 for no restriction.
    pub pin: u32,
    /// S in ns; adaptive if `None`.
    pub after_ns: Option<u64>,
    /// Interval of looks in ns; its default if `None`.
    pub poll_ns: Option<u64>,
    /// Steps down to the lowest class; one if `None`.
    pub steps: Option<u32>,
}

/// A running daemon, from the side of its parent.
#[derive(Debug)]
pub struct Steered {
    process: Child,
    stdout: BufReader<ChildStdout>,
}

impl Steered {
    /// Starts it, and waits until it sees new processes. What goes wrong in it later goes to
    /// `log`.
    ///
    /// # Errors
    /// If it cannot be started, or cannot see new processes.
    pub fn begin(plan: &Plan, log: Option<File>) -> Result<Self> {
        let program = std::env::current_exe().context("cannot find this program's own file")?;
        let mut process = Command::new(program)
            .args([STEER, &serde_json::to_string(plan)?])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log.map_or_else(Stdio::inherit, Stdio::from))
            .spawn()
            .context("cannot start the daemon")?;
        let stdout = process.stdout.take().context("no standard output")?;
        let mut steered = Self {
            process,
            stdout: BufReader::new(stdout),
        };
        let said = steered.line()?;
        if said != READY {
            bail!("{}", said.trim_end());
        }
        Ok(steered)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        let cannot = "cannot hear of the daemon";
        self.stdout.read_line(&mut line).context(cannot)?;
        Ok(line)
    }

    /// Its exit status, if it has ended on its own.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.process.try_wait().ok().flatten()
    }

    /// Ends it, and returns what it has done.
    ///
    /// # Errors
    /// If it says what went wrong instead.
    pub fn end(mut self) -> Result<Daemon> {
        drop(self.process.stdin.take());
        let said = self.line()?;
        let status = self.process.wait().context("cannot wait for the daemon")?;
        if !status.success() {
            bail!("the daemon ended with {status}: {}", said.trim_end());
        }
        serde_json::from_str(&said).context("cannot read what the daemon did")
    }
}

impl Drop for Steered {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// Runs a daemon with `plan`, a [`Plan`] in JSON; returns its exit code.
pub fn main(plan: &str) -> ExitCode {
    let mut stdout = std::io::stdout();
    let done = serde_json::from_str::<Plan>(plan)
        .context("no plan")
        .and_then(|plan| Steerer::new(&plan)?.run(&mut stdout));
    let (line, code) = match done {
        Ok(done) => (serde_json::to_string(&done), ExitCode::SUCCESS),
        Err(error) => (Ok(format!("{error:#}")), ExitCode::FAILURE),
    };
    let _ = writeln!(stdout, "{}", line.unwrap_or_default());
    code
}

/// The rule of a daemon.
fn rule(plan: &Plan) -> Result<Box<dyn Rule>> {
    let slice = slice(plan.after_ns, plan.cpus).map_err(|error| anyhow!("{error}"))?;
    let class = match plan.base {
        Base::Renice => Class::Nice(demoter::LOWEST_NICE),
        Base::Idle => Class::Idle,
        Base::SfsUser => {
            let poll_ns = plan.poll_ns.unwrap_or(original::POLL_NS);
            return Ok(Box::new(Original::new(slice, plan.cpus, poll_ns)));
        }
        other => bail!("{} has no daemon", other.name()),
    };
    let poll_ns = plan.poll_ns.unwrap_or(demoter::POLL_NS);
    let steps = plan.steps.unwrap_or(1);
    Ok(Box::new(Demoter::new(slice, class, steps, poll_ns)))
}

struct Steerer {
    rule: Box<dyn Rule>,
    events: Events,
    /// This process's parent, which starts the replay.
    supervisor: Pid,
    /// Its other children, whose children are functions.
    starters: HashSet<Pid>,
    functions: HashSet<Pid>,
    looks: Vec<Pid>,
    orders: Vec<Order>,
    done: Daemon,
}

impl Steerer {
    fn new(plan: &Plan) -> Result<Self> {
        pin(plan.pin).context("cannot restrict the daemon to the functions' CPUs")?;
        let priority = Attributes::of(libc::SCHED_FIFO).priority(PRIORITY as u32);
        let set = priority.set(0);
        set.context("the daemon needs real-time priority: run as root, or with CAP_SYS_NICE")?;
        Ok(Self {
            rule: rule(plan)?,
            events: Events::subscribe()?,
            supervisor: nix::unistd::getppid().as_raw(),
            starters: HashSet::new(),
            functions: HashSet::new(),
            looks: Vec::new(),
            orders: Vec::new(),
            done: Daemon::default(),
        })
    }

    /// Steers until standard input is closed.
    fn run(mut self, stdout: &mut impl Write) -> Result<Daemon> {
        stdout.write_all(READY.as_bytes())?;
        stdout.flush()?;
        let stdin = std::io::stdin();
        while !self.wait(&stdin)? {
            self.read_events()?;
            self.carry_out()?;
            self.look()?;
        }
        let used = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).context("no CPU clock")?;
        self.done.cpu_ms = (Duration::from(used).as_nanos() / 1_000) as f64 / 1e3;
        Ok(self.done)
    }

    /// Sleeps until something has happened or is due. Returns whether that was the end.
    fn wait(&self, stdin: &std::io::Stdin) -> Result<bool> {
        let mut files = [
            PollFd::new(self.events.as_fd(), PollFlags::POLLIN),
            PollFd::new(stdin.as_fd(), PollFlags::POLLIN),
        ];
        let left_ns = self
            .rule
            .wake_ns()
            .map(|at_ns| at_ns.saturating_sub(monotonic_ns()));
        let timeout = left_ns.map(|ns| TimeSpec::from_duration(Duration::from_nanos(ns)));
        match ppoll(&mut files, timeout, None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno).context("cannot wait for processes"),
        }
        let seen = files[1].revents().unwrap_or(PollFlags::empty());
        Ok(!seen.is_empty())
    }

    fn read_events(&mut self) -> Result<()> {
        loop {
            match self.events.read()? {
                Read::Event(event) => self.note(event),
                Read::Other => {}
                Read::Lost => self.done.lost += 1,
                Read::Nothing => return Ok(()),
            }
        }
    }

    fn note(&mut self, event: Event) {
        match event {
            Event::Forked { pid, parent, .. } if parent == self.supervisor => {
                self.starters.insert(pid);
            }
            Event::Forked { pid, parent, at_ns } if self.starters.contains(&parent) => {
                self.functions.insert(pid);
                self.done.invocations += 1;
                self.rule
                    .began(pid, at_ns, monotonic_ns(), &mut self.orders);
            }
            Event::Forked { .. } => {}
            Event::Ended { pid } => {
                self.starters.remove(&pid);
                if self.functions.remove(&pid) {
                    self.rule.ended(pid, monotonic_ns(), &mut self.orders);
                }
            }
        }
    }

    /// Looks at the processes that are due.
    fn look(&mut self) -> Result<()> {
        let mut looks = std::mem::take(&mut self.looks);
        self.rule.due(monotonic_ns(), &mut looks, &mut self.orders);
        self.carry_out()?;
        for pid in looks.drain(..) {
            self.done.looks += 1;
            let seen = match self.rule.look() {
                Look::CpuTime => cpu_time(pid).map(Seen::CpuTime),
                Look::Blocked => is_blocked(pid).map(Seen::Blocked),
            };
            match seen {
                Some(seen) => self.rule.seen(pid, seen, monotonic_ns(), &mut self.orders),
                None => self.rule.ended(pid, monotonic_ns(), &mut self.orders),
            }
            self.carry_out()?;
        }
        self.looks = looks;
        Ok(())
    }

    fn carry_out(&mut self) -> Result<()> {
        for Order { pid, class } in self.orders.drain(..) {
            self.done.moves += 1;
            match attributes(class).set(pid) {
                Ok(()) | Err(Errno::ESRCH) => {}
                Err(errno) => {
                    return Err(errno).context("cannot change the class of a function");
                }
            }
        }
        Ok(())
    }
}

/// The attributes of a class.
fn attributes(class: Class) -> Attributes {
    match class {
        Class::Fair => Attributes::of(libc::SCHED_OTHER),
        Class::Nice(nice) => Attributes::of(libc::SCHED_OTHER).nice(nice),
        Class::Idle => Attributes::of(libc::SCHED_IDLE),
        Class::Fifo => Attributes::of(libc::SCHED_FIFO).priority(1),
    }
}

/// The CPU time of a process in ns; `None` if it has ended.
fn cpu_time(pid: Pid) -> Option<u64> {
    let clock = clock_getcpuclockid(NixPid::from_raw(pid)).ok()?;
    let used = clock_gettime(clock).ok()?;
    u64::try_from(Duration::from(used).as_nanos()).ok()
}

/// Whether a process is blocked; `None` if it has ended.
fn is_blocked(pid: Pid) -> Option<bool> {
    let mut text = Vec::with_capacity(512);
    let mut file = File::open(format!("/proc/{pid}/stat")).ok()?;
    file.read_to_end(&mut text).ok()?;
    state(&text).and_then(|state| match state {
        b'S' | b'D' => Some(true),
        b'Z' | b'X' => None,
        _ => Some(false),
    })
}

/// The state in a /proc/PID/stat, behind the name, which may have parentheses.
fn state(stat: &[u8]) -> Option<u8> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    stat.get(end + 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_stands_behind_the_name() {
        assert_eq!(state(b"7 (a) R 1 2"), Some(b'R'));
        assert_eq!(state(b"7 (a) S) D 1"), Some(b'D'));
        assert_eq!((state(b""), state(b"7 (a)")), (None, None));
    }

    #[test]
    fn this_process_can_be_seen() {
        let pid = nix::unistd::getpid().as_raw();
        assert!(cpu_time(pid).is_some_and(|ns| ns > 0));
        assert!(is_blocked(pid).is_some());
        // No kernel has a process with this number.
        let nobody = 1 << 22;
        assert!(cpu_time(nobody).is_none() && is_blocked(nobody).is_none());
    }

    #[test]
    fn only_steered_rows_have_a_rule() {
        for base in Base::ALL {
            let plan = Plan {
                base,
                cpus: 4,
                pin: 0,
                after_ns: None,
                poll_ns: None,
                steps: None,
            };
            assert_eq!(rule(&plan).is_ok(), base.is_steered(), "{}", base.name());
        }
    }
}
