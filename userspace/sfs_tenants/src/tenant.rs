//! A tenant that cheats: processes in a cgroup that try to get more of the
//! machine than their due, by a short plan.

use std::fmt;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use anyhow::{bail, ensure, Context, Error, Result};
use nix::unistd::{fork, getpid, ForkResult, Pid};

use sfs_testbed::clock::{burn, cpu_time, sleep};
use sfs_testbed::process::{confine, set_nice};

/// The program's option with which a task of a tenant continues after an exec.
pub const PLAY: &str = "--play";

/// One action of a tenant's task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Burns this CPU time, in us.
    Burn(u64),
    /// Burns this CPU time inside system calls, in us.
    Call(u64),
    /// Sleeps for this time, in us.
    Sleep(u64),
    /// Connects to itself and accepts the connection.
    Accept,
    /// Calls accept() without a connection.
    AcceptInVain,
    /// Waits for a message from its own helper.
    Receive,
    /// Forks a child that continues in its place, and ends.
    Fork,
    /// Forks a child that continues too, up to a limit of children.
    Multiply,
    /// Starts a thread that continues in its place, and ends.
    Thread,
    /// Continues in a new program after an exec.
    Exec,
    /// Moves to a new cgroup below its own.
    Group,
    /// Changes its name.
    Rename,
    /// Yields.
    Yield,
    /// Sets this nice value.
    Nice(i32),
    /// Confines itself to this CPU; no effect if the CPU does not exist.
    Pin(usize),
}

/// The words for steps without a number.
const PLAIN: [(&str, Step); 9] = [
    ("accept", Step::Accept),
    ("accept-in-vain", Step::AcceptInVain),
    ("receive", Step::Receive),
    ("fork", Step::Fork),
    ("multiply", Step::Multiply),
    ("thread", Step::Thread),
    ("exec", Step::Exec),
    ("group", Step::Group),
    ("rename", Step::Rename),
];

impl Step {
    /// Returns whether the step uses CPU time for as long as it says.
    #[must_use]
    pub fn burns(&self) -> bool {
        matches!(self, Self::Burn(us) | Self::Call(us) if *us > 0)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Burn(us) => write!(f, "burn:{us}"),
            Self::Call(us) => write!(f, "call:{us}"),
            Self::Sleep(us) => write!(f, "sleep:{us}"),
            Self::Nice(value) => write!(f, "nice:{value}"),
            Self::Pin(cpu) => write!(f, "pin:{cpu}"),
            Self::Yield => f.write_str("yield"),
            plain => {
                let word = PLAIN.iter().find(|(_, step)| step == plain);
                f.write_str(word.map_or("", |(word, _)| word))
            }
        }
    }
}

impl FromStr for Step {
    type Err = Error;

    fn from_str(word: &str) -> Result<Self> {
        if let Some((_, step)) = PLAIN.iter().find(|(plain, _)| *plain == word) {
            return Ok(*step);
        }
        Ok(match word.split_once(':') {
            None if word == "yield" => Self::Yield,
            Some(("burn", us)) => Self::Burn(us.parse()?),
            Some(("call", us)) => Self::Call(us.parse()?),
            Some(("sleep", us)) => Self::Sleep(us.parse()?),
            Some(("nice", value)) => Self::Nice(value.parse()?),
            Some(("pin", cpu)) => Self::Pin(cpu.parse()?),
            _ => bail!("unknown step \"{word}\""),
        })
    }
}

/// A number of tasks, each of which repeats the same steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strategy {
    /// Number of tasks at the start.
    pub tasks: usize,
    /// The steps that each task repeats.
    pub steps: Vec<Step>,
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.tasks)?;
        self.steps.iter().try_for_each(|step| write!(f, " {step}"))
    }
}

impl FromStr for Strategy {
    type Err = Error;

    /// Reads "TASKS STEP…", as [`fmt::Display`] writes it.
    fn from_str(text: &str) -> Result<Self> {
        let mut words = text.split_whitespace();
        let tasks = words
            .next()
            .context("a strategy begins with a number of tasks")?;
        let steps: Result<Vec<Step>> = words.map(str::parse).collect();
        let steps = steps?;
        ensure!(!steps.is_empty(), "a strategy needs steps");
        Ok(Self {
            tasks: tasks.parse()?,
            steps,
        })
    }
}

impl Strategy {
    fn burns(&self) -> bool {
        self.tasks > 0 && self.steps.iter().any(Step::burns)
    }
}

/// Separates the strategies of a plan.
const PLUS: &str = " + ";

/// The plan of a tenant: one or more strategies at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan(pub Vec<Strategy>);

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.0.iter().map(Strategy::to_string).collect();
        f.write_str(&parts.join(PLUS))
    }
}

impl FromStr for Plan {
    type Err = Error;

    /// Reads "TASKS STEP… + TASKS STEP…", as [`fmt::Display`] writes it.
    fn from_str(text: &str) -> Result<Self> {
        let parts: Result<Vec<Strategy>> = text.split(PLUS).map(str::parse).collect();
        let parts = parts?;
        ensure!(
            parts.iter().any(Strategy::burns),
            "a plan that never burns gains nothing"
        );
        Ok(Self(parts))
    }
}

impl Plan {
    /// Returns the plan with at least `cpus` tasks in each part. With fewer, a
    /// tenant could not use its half of a large machine.
    #[must_use]
    pub fn at_least(mut self, cpus: usize) -> Self {
        for part in &mut self.0 {
            part.tasks = part.tasks.max(cpus);
        }
        self
    }
}

/// Limit of processes that `multiply` makes of each task.
const MOST_CHILDREN: u64 = 16;

/// Plays the steps of one task, from number `first` on, until it is killed.
pub fn play(strategy: &Strategy, first: usize) -> ! {
    let mut player = Player::default();
    let mut number = first;
    loop {
        let step = strategy.steps[number % strategy.steps.len()];
        number += 1;
        // A step that fails gains nothing.
        let _ = player.take(step, strategy, number);
    }
}

/// Continues a task after an exec, from the words that follow [`PLAY`] on the command line.
///
/// # Errors
///
/// The words are not a strategy.
pub fn play_words(words: &[String]) -> Result<()> {
    let (first, rest) = words
        .split_first()
        .context("the number of the next step is missing")?;
    let strategy: Strategy = rest.join(" ").parse()?;
    play(&strategy, first.parse()?)
}

/// State of a tenant's process between steps.
#[derive(Default)]
struct Player {
    listener: Option<(UnixListener, SocketAddr)>,
    helper: Option<(Pid, UnixStream)>,
    children: u64,
}

impl Player {
    fn take(&mut self, step: Step, strategy: &Strategy, next: usize) -> Result<()> {
        match step {
            Step::Burn(us) => burn(Duration::from_micros(us)),
            Step::Call(us) => burn_in_the_kernel(Duration::from_micros(us))?,
            Step::Sleep(us) => sleep(Duration::from_micros(us)),
            Step::Accept => self.accept()?,
            Step::AcceptInVain => self.accept_in_vain()?,
            Step::Receive => self.receive()?,
            Step::Fork => self.fork(true)?,
            Step::Multiply if self.children < MOST_CHILDREN => self.fork(false)?,
            Step::Multiply => {}
            Step::Thread => go_on_in_thread(strategy, next),
            Step::Exec => return Err(exec(strategy, next)),
            Step::Group => enter_new_group()?,
            Step::Rename => rename()?,
            Step::Yield => thread::yield_now(),
            Step::Nice(value) => set_nice(Pid::from_raw(0), value)?,
            Step::Pin(cpu) => pin(cpu)?,
        }
        Ok(())
    }

    /// Returns the task's own listener.
    fn listener(&mut self) -> Result<&(UnixListener, SocketAddr)> {
        let mine = self.listener.take();
        let made = match mine {
            Some(there) => there,
            None => {
                let name = format!("tenant-{}-{}", getpid(), unique());
                let address = SocketAddr::from_abstract_name(name)?;
                (UnixListener::bind_addr(&address)?, address)
            }
        };
        Ok(self.listener.insert(made))
    }

    fn accept(&mut self) -> Result<()> {
        let (listener, address) = self.listener()?;
        let client = UnixStream::connect_addr(address)?;
        let server = listener.accept();
        drop((client, server));
        Ok(())
    }

    fn accept_in_vain(&mut self) -> Result<()> {
        let (listener, _) = self.listener()?;
        listener.set_nonblocking(true)?;
        let error = listener.accept().err().map(|error| error.kind());
        listener.set_nonblocking(false)?;
        ensure!(
            error == Some(ErrorKind::WouldBlock),
            "unexpected connection"
        );
        Ok(())
    }

    /// Sends a message to the helper and waits for its answer.
    fn receive(&mut self) -> Result<()> {
        if !matches!(&self.helper, Some((owner, _)) if *owner == getpid()) {
            let (mine, theirs) = UnixStream::pair()?;
            start_helper(theirs)?;
            self.helper = Some((getpid(), mine));
        }
        let (_, helper) = self.helper.as_mut().context("the helper is missing")?;
        helper.write_all(&[0])?;
        helper.read_exact(&mut [0])?;
        Ok(())
    }

    /// Forks a child. Returns in the child, and in the parent unless `ends`.
    fn fork(&mut self, ends: bool) -> Result<()> {
        // SAFETY: a player has a single thread, except for one that only waits.
        match unsafe { fork() }? {
            ForkResult::Child => self.children = MOST_CHILDREN,
            // SAFETY: ends the process; there is no output to write.
            ForkResult::Parent { .. } if ends => unsafe { libc::_exit(0) },
            ForkResult::Parent { .. } => self.children += 1,
        }
        self.listener = None;
        Ok(())
    }
}

/// Uses CPU time in system calls, which clear memory, and nearly none between them.
fn burn_in_the_kernel(demand: Duration) -> Result<()> {
    let end = cpu_time() + demand;
    let mut zeros = File::open("/dev/zero")?;
    let mut memory = vec![0; 64 * 1024];
    while cpu_time() < end {
        zeros.read_exact(&mut memory)?;
    }
    Ok(())
}

/// Returns a number that is unique in this process.
fn unique() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Relaxed)
}

/// Forks a process that answers each byte with a byte.
fn start_helper(mut stream: UnixStream) -> Result<()> {
    // SAFETY: as for the players.
    if let ForkResult::Child = unsafe { fork() }? {
        while stream.read_exact(&mut [0]).is_ok() && stream.write_all(&[0]).is_ok() {}
        // SAFETY: as above.
        unsafe { libc::_exit(0) }
    }
    Ok(())
}

/// Continues in a new thread. The first thread of a process then waits forever,
/// others end.
fn go_on_in_thread(strategy: &Strategy, next: usize) {
    let mine = strategy.clone();
    let builder = thread::Builder::new().stack_size(64 * 1024);
    if builder.spawn(move || play(&mine, next)).is_err() {
        return;
    }
    // SAFETY: takes no arguments.
    if Pid::from_raw(unsafe { libc::gettid() }) == getpid() {
        loop {
            thread::park();
        }
    }
    // SAFETY: ends only this thread; values on its stack are leaked.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
}

/// Executes this program again. Returns only if that fails.
fn exec(strategy: &Strategy, next: usize) -> Error {
    let words = format!("{next} {strategy}");
    let mut command = Command::new("/proc/self/exe");
    command.arg(PLAY).args(words.split_whitespace());
    command.exec().into()
}

/// Moves to a new group below this process's original one, and removes the previous one.
fn enter_new_group() -> Result<()> {
    let text = fs::read_to_string("/proc/self/cgroup")?;
    let own = text.trim().strip_prefix("0::/").context("no cgroup v2")?;
    let own = PathBuf::from("/sys/fs/cgroup").join(own);
    let made_here = own
        .file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with("own-"));
    let base = if made_here {
        own.parent().unwrap_or(&own)
    } else {
        &own
    };
    let new = base.join(format!("own-{}-{}", getpid(), unique()));
    fs::create_dir(&new)?;
    fs::write(new.join("cgroup.procs"), "0")?;
    if made_here {
        let _ = fs::remove_dir(&own);
    }
    Ok(())
}

fn rename() -> Result<()> {
    let name = std::ffi::CString::new(format!("t{}-{}", getpid(), unique()))?;
    Ok(nix::sys::prctl::set_name(&name)?)
}

fn pin(cpu: usize) -> Result<()> {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let all: Vec<usize> = (0..cpus.max(cpu + 1)).collect();
    confine(
        Pid::from_raw(0),
        all.get(cpu..=cpu).filter(|_| cpu < 64).unwrap_or(&all),
    )
}

#[cfg(test)]
mod tests {
    use super::{Plan, Step, Strategy};

    #[test]
    fn strategies_survive_a_round_trip() {
        let text = "4 burn:50000 accept sleep:10 nice:-5 pin:2 yield accept-in-vain group";
        let strategy: Strategy = text.parse().unwrap();
        assert_eq!(strategy.tasks, 4);
        assert_eq!(strategy.steps.len(), 8);
        assert_eq!(strategy.to_string(), text);
        assert_eq!("accept".parse::<Step>().unwrap(), Step::Accept);
    }

    #[test]
    fn invalid_strategies_are_refused() {
        for text in ["", "4", "x burn:1", "4 burn", "4 burn:1 steal"] {
            assert!(text.parse::<Strategy>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_plan_has_parts_of_which_one_burns() {
        let text = "4 burn:50000 accept + 1 sleep:100 yield";
        let plan: Plan = text.parse().unwrap();
        assert_eq!(plan.0.len(), 2);
        assert_eq!(plan.to_string(), text);
        for text in ["4 accept", "1 burn:1 +", "0 burn:1", "2 yield + 1 burn:0"] {
            assert!(text.parse::<Plan>().is_err(), "{text}");
        }
    }
}
