//! Sets the machine up for each scheduler: a policy of the children, or a
//! sched_ext scheduler that is started before the replay and stopped after it.

use anyhow::{bail, Context, Result};
use faas_data::output::Output;
use faas_data::summary::Status;
use faas_replay::realtime::ChildPolicy;
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Where the kernel reports the loaded sched_ext scheduler.
const SYSFS: &str = "/sys/kernel/sched_ext";

/// Maximum time from a scheduler's start until it is enabled. Loading takes
/// some schedulers 40 s on emulated CPUs.
pub const LOAD_TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum time for a scheduler to exit after SIGINT.
const EXIT_TIMEOUT: Duration = Duration::from_secs(30);

/// The environment variable that makes scx_sfs print S and the mode, if it is `true`
/// ([`faas_data::summary::slice`]). Other schedulers ignore it.
const ASK: &str = "SCX_SFS_LOG_SLICE";

const POLL: Duration = Duration::from_millis(50);

/// The scheduler to run under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scheduler {
    /// The kernel's own scheduling, with this policy for the children.
    Kernel(ChildPolicy),
    /// A sched_ext scheduler.
    Ext {
        /// Its program.
        program: PathBuf,
        /// The start of `root/ops` once it is loaded.
        ops: String,
        /// Its arguments.
        args: Vec<String>,
    },
}

impl Scheduler {
    /// Finds the scheduler called `name`: `eevdf`, `fifo`, `rr`, `batch`, or a
    /// program by path or by name (in PATH, beside this program or in the
    /// current folder). `ops` is the kernel's name for it; default: the
    /// program's name without `scx_`.
    ///
    /// # Errors
    /// If there is no such program, or options are invalid for this row.
    pub fn find(name: &str, ops: Option<&str>, args: &str) -> Result<Self> {
        let policy = match name {
            "eevdf" => ChildPolicy::Normal,
            "fifo" => ChildPolicy::Fifo,
            "rr" => ChildPolicy::RoundRobin,
            "batch" => ChildPolicy::Batch,
            _ => return Self::find_ext(name, ops, args),
        };
        if !args.is_empty() || ops.is_some() {
            bail!("{name} is part of the kernel and takes no --scheduler-args or --scheduler-ops");
        }
        Ok(Self::Kernel(policy))
    }

    fn find_ext(name: &str, ops: Option<&str>, args: &str) -> Result<Self> {
        let program = find_program(name).with_context(|| {
            format!(
                "unknown scheduler `{name}`: want eevdf, fifo, rr, batch, or a program \
                 in PATH, beside faasbench or given by its path"
            )
        })?;
        let base = row_name(name);
        let ops = ops.unwrap_or(base.strip_prefix("scx_").unwrap_or(&base));
        Ok(Self::Ext {
            program,
            ops: ops.to_string(),
            args: args.split_whitespace().map(str::to_string).collect(),
        })
    }

    /// The policy of the children.
    pub fn policy(&self) -> ChildPolicy {
        match self {
            Self::Kernel(policy) => *policy,
            Self::Ext { .. } => ChildPolicy::Normal,
        }
    }

    /// Checks that the machine is ready for it.
    ///
    /// # Errors
    /// If a sched_ext scheduler is already loaded, or is requested on a kernel
    /// without sched_ext.
    pub fn check_machine(&self) -> Result<()> {
        if let Some(loaded) = loaded() {
            bail!("the sched_ext scheduler {loaded} is loaded: stop it before the benchmark");
        }
        if matches!(self, Self::Ext { .. }) && !Path::new(SYSFS).exists() {
            bail!("this kernel has no sched_ext ({SYSFS} is missing): want CONFIG_SCHED_CLASS_EXT");
        }
        Ok(())
    }

    /// Starts it and waits until it is enabled. Its output goes to `log`.
    ///
    /// # Errors
    /// Only if waiting itself fails; a scheduler that does not load is a
    /// [`Session`] with that status.
    pub fn start(&self, log: Option<File>) -> Result<Session> {
        match self {
            Self::Kernel(_) => Ok(Session::kernel()),
            Self::Ext { program, ops, args } => Session::ext(program, ops, args, log),
        }
    }
}

/// The name of a scheduler's row, from the user's name for it.
pub fn row_name(name: &str) -> String {
    let base = Path::new(name).file_name();
    base.map_or_else(
        || name.to_string(),
        |base| base.to_string_lossy().into_owned(),
    )
}

fn find_program(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return is_program(Path::new(name)).then(|| PathBuf::from(name));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    if let Ok(own) = std::env::current_exe() {
        folders.extend(own.parent().map(Path::to_path_buf));
    }
    folders.push(PathBuf::from("."));
    let candidates = folders.into_iter().map(|folder| folder.join(name));
    candidates.into_iter().find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path)
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

fn sysfs(name: &str) -> Option<String> {
    let text = std::fs::read_to_string(Path::new(SYSFS).join(name)).ok()?;
    Some(text.trim().to_string())
}

/// The name of the loaded sched_ext scheduler.
fn loaded() -> Option<String> {
    let state = sysfs("state")?;
    (state != "disabled").then(|| sysfs("root/ops").unwrap_or_else(|| format!("({state})")))
}

/// Whether the kernel's `name` is a scheduler called `ops`:
/// `bpfland_1.1.4_x86_64...` is `bpfland`, `simple` is `simple`.
fn is_ops(name: &str, ops: &str) -> bool {
    let rest = name.strip_prefix(ops);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}

/// The version in the kernel's name for a scheduler called `ops`: the part
/// between its name and its target.
fn version_in(name: &str, ops: &str) -> Option<String> {
    let rest = name.strip_prefix(ops)?.strip_prefix('_')?;
    let end = rest.find(concat!("_", "x86_64")).or(rest.find("_aarch64"));
    Some(rest[..end.unwrap_or(rest.len())].to_string())
}

/// A scheduler in charge of the machine.
#[derive(Debug)]
pub struct Session {
    process: Option<Child>,
    enabled: Option<String>,
    /// Its version, of the program or of the kernel.
    pub version: String,
    /// The errors so far.
    pub trouble: Option<(Status, String)>,
}

impl Session {
    fn kernel() -> Self {
        Self {
            process: None,
            enabled: None,
            version: kernel_release(),
            trouble: None,
        }
    }

    fn ext(program: &Path, ops: &str, args: &[String], log: Option<File>) -> Result<Self> {
        let output = |log: &Option<File>| match log {
            Some(file) => file.try_clone().map(Stdio::from),
            None => Ok(Stdio::null()),
        };
        let mut command = Command::new(program);
        command
            .args(args)
            .env(ASK, "true")
            .stdin(Stdio::null())
            .stdout(output(&log).context("cannot keep the scheduler's output")?)
            .stderr(output(&log).context("cannot keep the scheduler's output")?);
        let mut session = Self {
            process: None,
            enabled: None,
            version: "unknown".to_string(),
            trouble: None,
        };
        match command.spawn() {
            Ok(process) => session.await_load(process, ops)?,
            Err(error) => {
                session.trouble = Some((Status::NotLoaded, format!("cannot start it: {error}")));
            }
        }
        Ok(session)
    }

    fn await_load(&mut self, mut process: Child, ops: &str) -> Result<()> {
        let deadline = Instant::now() + LOAD_TIMEOUT;
        let problem = loop {
            if let Some(status) = process
                .try_wait()
                .context("cannot wait for the scheduler")?
            {
                break format!("it ended before it was enabled: {status}");
            }
            if sysfs("state").as_deref() == Some("enabled") {
                let name = sysfs("root/ops").unwrap_or_default();
                if is_ops(&name, ops) {
                    self.version = version_in(&name, ops).unwrap_or_else(|| "unknown".into());
                    self.enabled = sysfs("enable_seq");
                    self.process = Some(process);
                    return Ok(());
                }
                stop(&mut process);
                break format!("the kernel calls it `{name}`, want `{ops}` or `{ops}_...`");
            }
            if Instant::now() > deadline {
                stop(&mut process);
                break format!("it was not enabled within {} s", LOAD_TIMEOUT.as_secs());
            }
            std::thread::sleep(POLL);
        };
        self.trouble = Some((Status::NotLoaded, problem));
        Ok(())
    }

    /// Whether it is loaded, so that a replay can be measured.
    pub fn is_loaded(&self) -> bool {
        !matches!(self.trouble, Some((Status::NotLoaded, _)))
    }

    /// Checks, right after the replay, whether it was loaded throughout; then
    /// stops it.
    pub fn finish(&mut self) {
        let Some(mut process) = self.process.take() else {
            return;
        };
        let ended = process.try_wait().ok().flatten();
        if let Some(status) = ended {
            let how = format!("it ended during the replay: {status}");
            self.trouble = Some((Status::Ejected, how));
            return;
        }
        if sysfs("state").as_deref() != Some("enabled") {
            let how = "the kernel disabled it during the replay".to_string();
            self.trouble = Some((Status::Ejected, how));
        } else if sysfs("enable_seq") != self.enabled {
            let how = "it was loaded again during the replay".to_string();
            self.trouble = Some((Status::Reloaded, how));
        }
        let problem = match stop(&mut process) {
            Some(status) if status.success() => return,
            Some(status) => format!("after SIGINT: {status}"),
            None => format!(
                "it did not exit within {} s of SIGINT",
                EXIT_TIMEOUT.as_secs()
            ),
        };
        self.trouble.get_or_insert((Status::BadExit, problem));
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            stop(process);
        }
    }
}

/// Ends `process` with SIGINT and waits; `None` if it had to be killed.
fn stop(process: &mut Child) -> Option<ExitStatus> {
    let _ = kill(Pid::from_raw(process.id() as i32), Signal::SIGINT);
    let deadline = Instant::now() + EXIT_TIMEOUT;
    while Instant::now() < deadline {
        if let Ok(Some(status)) = process.try_wait() {
            return Some(status);
        }
        std::thread::sleep(POLL);
    }
    let _ = process.kill();
    let _ = process.wait();
    None
}

/// The running kernel's release, as `uname -r` prints it.
pub fn kernel_release() -> String {
    let name = nix::sys::utsname::uname();
    name.map_or_else(
        |_| "unknown".to_string(),
        |name| name.release().to_string_lossy().into_owned(),
    )
}

/// Opens the file for a scheduler's output, which is written synchronously and
/// so survives a crash of the machine.
///
/// # Errors
/// If it cannot be written.
pub fn open_log(path: &Path) -> Result<File> {
    // With the same error as for other outputs that cannot be written.
    drop(Output::create(path)?);
    File::create(path).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_the_kernel_have_their_policies() {
        let policy = |name| Scheduler::find(name, None, "").unwrap().policy();
        assert_eq!(policy("eevdf"), ChildPolicy::Normal);
        assert_eq!(policy("fifo"), ChildPolicy::Fifo);
        assert_eq!(policy("rr"), ChildPolicy::RoundRobin);
        assert_eq!(policy("batch"), ChildPolicy::Batch);
        assert!(Scheduler::find("eevdf", None, "--fast").is_err());
    }

    #[test]
    fn programs_are_found_by_path_and_name() {
        let found = Scheduler::find("/bin/sh", None, "-c true").unwrap();
        let want = Scheduler::Ext {
            program: "/bin/sh".into(),
            ops: "sh".into(),
            args: vec!["-c".into(), "true".into()],
        };
        assert_eq!(found, want);
        assert!(Scheduler::find("sh", Some("x"), "").is_ok());
        for missing in ["scx_no_such_scheduler", "/etc/passwd", "/"] {
            assert!(Scheduler::find(missing, None, "").is_err(), "{missing}");
        }
    }

    #[test]
    fn the_kernels_names_are_parsed() {
        let name = "bpfland_1.1.4_g12ab_x86_64_unknown_linux_gnu";
        assert!(is_ops(name, "bpfland") && is_ops("simple", "simple"));
        assert!(!is_ops(name, "bpf") && !is_ops(name, "flash"));
        assert_eq!(version_in(name, "bpfland").as_deref(), Some("1.1.4_g12ab"));
        assert_eq!(version_in("simple", "simple"), None);
        assert_eq!(version_in("sfs_0.1.0", "sfs").as_deref(), Some("0.1.0"));
    }

    #[test]
    fn a_program_that_ends_at_once_is_not_loaded() {
        if Path::new(SYSFS).exists() && loaded().is_some() {
            sfs_skip::skip!("a sched_ext scheduler is loaded");
        }
        let scheduler = Scheduler::find("/bin/false", None, "").unwrap();
        let mut session = scheduler.start(None).unwrap();
        assert!(!session.is_loaded());
        let (status, how) = session.trouble.clone().unwrap();
        assert_eq!(status, Status::NotLoaded);
        assert_eq!(how, "it ended before it was enabled: exit status: 1");
        session.finish();
    }
}
