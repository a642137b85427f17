//! What a row runs under: the kernel's own scheduling, perhaps with a daemon that steers it,
//! or a sched_ext scheduler; and the settings of the kernel.

use crate::session::Session;
use anyhow::{anyhow, bail, Context, Result};
use faas_baselines::name::{Base, Named, Settings};
use faas_baselines::steer::Plan;
use faas_data::output::Output;
use faas_replay::realtime::ChildPolicy;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Where the kernel reports the loaded sched_ext scheduler.
const SYSFS: &str = "/sys/kernel/sched_ext";

/// The scheduler to run under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scheduler {
    /// What it is.
    pub kind: Kind,
    /// The settings of its row.
    pub settings: Settings,
}

/// What a scheduler is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// The kernel's own scheduling.
    Kernel(Base),
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
    /// Finds the scheduler called `name`: one of [`Base`], or a program by
    /// path or by name (in PATH, beside this program or in the current
    /// folder); settings may follow as in `eevdf(slice=10ms)`. `ops` is the
    /// kernel's name for it; default: the program's name without `scx_`.
    ///
    /// # Errors
    /// If there is no such program, or options are invalid for this row.
    pub fn find(name: &str, ops: Option<&str>, args: &str) -> Result<Self> {
        let named = Named::parse(name).map_err(|error| anyhow!("{error}"))?;
        let kind = match named.base() {
            None => Self::find_ext(&named.scheduler, ops, args)?,
            Some(_) if !args.is_empty() || ops.is_some() => bail!(
                "{name} is part of the kernel and takes no --scheduler-args or --scheduler-ops"
            ),
            Some(base) => Kind::Kernel(base),
        };
        let settings = named.settings;
        Ok(Self { kind, settings })
    }

    fn find_ext(name: &str, ops: Option<&str>, args: &str) -> Result<Kind> {
        let program = find_program(name).with_context(|| {
            let known = Base::ALL.map(Base::name).join(", ");
            format!(
                "unknown scheduler `{name}`: want {known}, or a program \
                 in PATH, beside faasbench or given by its path"
            )
        })?;
        let base = row_name(name);
        let ops = ops.unwrap_or(base.strip_prefix("scx_").unwrap_or(&base));
        Ok(Kind::Ext {
            program,
            ops: ops.to_string(),
            args: args.split_whitespace().map(str::to_string).collect(),
        })
    }

    /// The policy of the children.
    pub fn policy(&self) -> ChildPolicy {
        let slice_ns = self.settings.task_slice_ns;
        match self.kind {
            Kind::Kernel(Base::Fifo) => ChildPolicy::Fifo,
            Kind::Kernel(Base::Rr) => ChildPolicy::RoundRobin,
            Kind::Kernel(Base::Batch) => ChildPolicy::Batch,
            Kind::Kernel(_) | Kind::Ext { .. } => slice_ns
                .and_then(|ns| u32::try_from(ns).ok())
                .map_or(ChildPolicy::Normal, ChildPolicy::Sliced),
        }
    }

    /// The daemon that steers the children, on `cpus` CPUs and restricted to `pin` of the
    /// machine's (0: not restricted), if this row has one.
    pub fn daemon(&self, cpus: u32, pin: u32) -> Option<Plan> {
        match self.kind {
            Kind::Kernel(base) if base.is_steered() => Some(Plan {
                base,
                cpus,
                pin,
                after_ns: self.settings.after_ns,
                poll_ns: self.settings.poll_ns,
                steps: self.settings.steps,
            }),
            _ => None,
        }
    }

    /// Whether it writes a log.
    pub fn has_log(&self) -> bool {
        match self.kind {
            Kind::Kernel(base) => base.is_steered(),
            Kind::Ext { .. } => true,
        }
    }

    /// Checks that the machine is ready for it.
    ///
    /// # Errors
    /// If a sched_ext scheduler is already loaded, or is requested on a kernel
    /// without sched_ext, or if this is another kernel than the row asks for.
    pub fn check_machine(&self) -> Result<()> {
        if let Some(loaded) = loaded() {
            bail!("the sched_ext scheduler {loaded} is loaded: stop it before the benchmark");
        }
        let release = kernel_release();
        self.settings
            .check_kernel(&release)
            .map_err(|error| anyhow!("{error}"))?;
        match self.kind {
            Kind::Kernel(base) => base
                .check_kernel(&release)
                .map_err(|error| anyhow!("{error}")),
            Kind::Ext { .. } if !Path::new(SYSFS).exists() => {
                bail!(
                    "this kernel has no sched_ext ({SYSFS} is missing): want CONFIG_SCHED_CLASS_EXT"
                )
            }
            Kind::Ext { .. } => Ok(()),
        }
    }

    /// Puts its settings into force, starts it, or the daemon `daemon`, and
    /// waits until it is enabled. Its output goes to `log`.
    ///
    /// # Errors
    /// Only if waiting itself fails; a scheduler that does not load is a
    /// [`Session`] with that status.
    pub fn start(&self, daemon: Option<&Plan>, log: Option<File>) -> Result<Session> {
        let mut session = Session::default();
        session.tune(&self.settings.tuning);
        if session.is_loaded() {
            match (&self.kind, daemon) {
                (Kind::Ext { program, ops, args }, _) => session.load(program, ops, args, log)?,
                (Kind::Kernel(_), Some(plan)) => session.steer(plan, log),
                (Kind::Kernel(_), None) => {}
            }
        }
        Ok(session)
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

pub(crate) fn sysfs(name: &str) -> Option<String> {
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
pub(crate) fn is_ops(name: &str, ops: &str) -> bool {
    let rest = name.strip_prefix(ops);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}

/// The version in the kernel's name for a scheduler called `ops`: the part
/// between its name and its target.
pub(crate) fn version_in(name: &str, ops: &str) -> Option<String> {
    let rest = name.strip_prefix(ops)?.strip_prefix('_')?;
    let end = rest.find(concat!("_", "x86_64")).or(rest.find("_aarch64"));
    Some(rest[..end.unwrap_or(rest.len())].to_string())
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
        assert_eq!(policy("renice"), ChildPolicy::Normal);
        assert_eq!(
            policy("eevdf(task-slice=3ms)"),
            ChildPolicy::Sliced(3_000_000)
        );
        assert!(Scheduler::find("eevdf", None, "--fast").is_err());
        assert!(Scheduler::find("eevdf(slice=3)", None, "").is_err());
    }

    #[test]
    fn programs_are_found_by_path_and_name() {
        let found = Scheduler::find("/bin/sh", None, "-c true").unwrap();
        let want = Kind::Ext {
            program: "/bin/sh".into(),
            ops: "sh".into(),
            args: vec!["-c".into(), "true".into()],
        };
        assert_eq!(found.kind, want);
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
        let mut session = scheduler.start(None, None).unwrap();
        assert!(!session.is_loaded());
        let (status, how) = session.trouble.clone().unwrap();
        assert_eq!(status, faas_data::summary::Status::NotLoaded);
        assert_eq!(how, "it ended before it was enabled: exit status: 1");
        session.finish();
    }
}
