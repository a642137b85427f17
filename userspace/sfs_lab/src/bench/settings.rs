//! The settings of `bench`.

use faas_baselines::name::{parts, Named};
use std::ffi::OsString;
use std::path::PathBuf;

/// The rows by default.
pub const SCHEDULERS: &str = "eevdf fifo rr batch scx_sfs srtf ideal";

/// The folder for the results by default.
pub const OUT: &str = "out/bench";

/// Real time in seconds after which a VM is given up, by default.
pub const TIMEOUT_S: u32 = 7200;

/// The last of the machines that `vm/run --perturb` knows.
const MACHINES: u16 = 9999;

/// One comparison: one trace under several schedulers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The rows, in the order of the table.
    pub rows: Vec<Row>,
    /// The trace.
    pub source: Source,
    /// What serves the invocations.
    pub sandbox: Sandbox,
    /// More options of `faasbench run`, separated by spaces.
    pub sandbox_args: String,
    /// CPUs of the VM, 1 to 255.
    pub cpus: u32,
    /// The kernel, as for `vm/run`: a version or an image; none is its default.
    pub kernel: Option<String>,
    /// How the VM's CPUs are made.
    pub accel: Accel,
    /// Which of the machines that differ a little.
    pub machine: Machine,
    /// The folder for the results, made if missing.
    pub out: PathBuf,
    /// VMs at the same time; by default one for each core in virtual time, else one.
    pub jobs: Option<u32>,
    /// Real time in seconds after which a VM is given up, 1 or more.
    pub timeout_s: u32,
    /// Whether to measure again what has a result.
    pub fresh: bool,
}

impl Settings {
    /// The defaults, for these rows and this trace.
    pub fn new(rows: Vec<Row>, source: Source) -> Self {
        Self {
            rows,
            source,
            sandbox: Sandbox::Process,
            sandbox_args: String::new(),
            cpus: 4,
            kernel: None,
            accel: Accel::Icount,
            machine: Machine::One(0),
            out: OUT.into(),
            jobs: None,
            timeout_s: TIMEOUT_S,
            fresh: false,
        }
    }

    /// The number of the machine, as for `vm/run --perturb`; 0 is the usual one.
    pub fn machine(&self) -> u16 {
        self.machine.of(self.source.seed().unwrap_or(0))
    }

    /// VMs at the same time.
    pub fn jobs(&self) -> usize {
        match (self.jobs, self.accel) {
            (Some(jobs), _) => jobs as usize,
            // Virtual time does not notice that the cores are busy.
            (None, Accel::Icount) => {
                std::thread::available_parallelism().map_or(1, |cores| cores.get())
            }
            (None, Accel::Tcg | Accel::Kvm) => 1,
        }
    }
}

/// One row: a scheduler, perhaps with a label, and what it has of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    /// The scheduler, or the scheduler, `+` and a label.
    pub name: String,
    /// Options of the scheduler, separated by spaces.
    pub args: Option<String>,
    /// Another program than the scheduler's own.
    pub program: Option<PathBuf>,
    /// Files for the row's guest, `HOST:/GUEST` separated by spaces.
    pub files: String,
}

impl Row {
    /// The row `name`, with the settings of its own that `setting` has for it: by the name
    /// of the variable, such as `ARGS_scx_sfs_short`.
    pub fn with_settings(name: &str, setting: impl Fn(&str) -> Option<OsString>) -> Self {
        let get = |prefix| setting(&variable(prefix, name));
        let text = |value: OsString| value.to_string_lossy().into_owned();
        Self {
            name: name.to_string(),
            args: get("ARGS").map(text),
            program: get("PROGRAM").map(PathBuf::from),
            files: get("FILES").map(text).unwrap_or_default(),
        }
    }

    /// The scheduler with its settings, without the label.
    pub fn given(&self) -> &str {
        parts(&self.name).0
    }

    /// The label, if it has one.
    pub fn label(&self) -> Option<&str> {
        parts(&self.name).1
    }

    /// The scheduler, without settings and label.
    pub fn scheduler(&self) -> &str {
        let given = self.given();
        given.split('(').next().unwrap_or(given)
    }

    /// The kernel that its VM boots, if the row says so.
    ///
    /// # Errors
    /// One sentence if its settings cannot be read.
    pub fn kernel(&self) -> Result<Option<String>, String> {
        Ok(Named::parse(self.given())?.kernel().map(str::to_string))
    }

    /// Its options, or an empty string.
    pub fn args(&self) -> &str {
        self.args.as_deref().unwrap_or_default()
    }

    /// Its program, if it has one of its own.
    pub fn program(&self) -> Option<&PathBuf> {
        let given = self.program.as_ref();
        given.filter(|path| !path.as_os_str().is_empty())
    }
}

/// The environment variable for a setting of a row: what is neither a letter nor a digit in
/// the row's name is `_`.
///
/// # Example
///
/// ```
/// let name = sfs_lab::bench::settings::variable("ARGS", "scx_sfs+short-1");
/// assert_eq!(name, "ARGS_scx_sfs_short_1");
/// ```
pub fn variable(prefix: &str, row: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    format!("{prefix}_{}", row.chars().map(plain).collect::<String>())
}

/// Where the trace comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file.
    File(PathBuf),
    /// `faasbench gen`.
    Generated(Workload),
    /// A copy of another one, with arrivals that are moved a little.
    Moved {
        /// The other one.
        of: Box<Source>,
        /// By how much at most, as `50us`.
        by: String,
        /// The seed of the moves.
        seed: u64,
    },
}

impl Source {
    /// The seed; a file has none.
    pub fn seed(&self) -> Option<u64> {
        match self {
            Self::File(_) => None,
            Self::Generated(workload) => workload.seed.parse().ok(),
            Self::Moved { seed, .. } => Some(*seed),
        }
    }
}

/// A workload of `faasbench gen`. Values are as its command line has them, and it checks
/// them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workload {
    /// The workload.
    pub name: String,
    /// Number of invocations.
    pub invocations: String,
    /// Offered load.
    pub load: String,
    /// How long the invocations are.
    pub size: Size,
    /// The seed.
    pub seed: String,
    /// More options, separated by spaces.
    pub options: String,
}

/// How long the invocations of a workload are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Size {
    /// The workload's own times, by this factor.
    Scale(String),
    /// This mean service time, in ms.
    MeanMs(String),
}

/// What serves the invocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Sandbox {
    /// A process for each invocation
    Process,
    /// Processes that serve many invocations of one function
    Warm,
    /// The same, each in a cgroup of its own
    Cgroup,
}

impl Sandbox {
    /// Its name on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Warm => "warm",
            Self::Cgroup => "cgroup",
        }
    }
}

/// Which of the machines that differ a little (`vm/run --perturb`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Machine {
    /// This one.
    One(u16),
    /// Another one for each seed.
    Seed,
}

impl Machine {
    /// The machine for this seed.
    ///
    /// # Example
    ///
    /// ```
    /// use sfs_lab::bench::settings::Machine;
    /// assert_eq!(Machine::Seed.of(3), 3);
    /// assert_eq!("7".parse::<Machine>().unwrap().of(3), 7);
    /// ```
    pub fn of(self, seed: u64) -> u16 {
        match self {
            Self::One(machine) => machine,
            Self::Seed => (seed % (u64::from(MACHINES) + 1)) as u16,
        }
    }
}

impl std::str::FromStr for Machine {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            _ if text == "seed" => Ok(Self::Seed),
            Ok(number) if number <= MACHINES => Ok(Self::One(number)),
            _ => Err(format!(
                "is neither a number from 0 to {MACHINES} nor 'seed'"
            )),
        }
    }
}

/// How the VM's CPUs are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Accel {
    /// Virtual time: the same bytes each time
    Icount,
    /// Emulation on several threads of the host
    Tcg,
    /// The host's virtualisation
    Kvm,
}

impl Accel {
    /// Its name on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Icount => "icount",
            Self::Tcg => "tcg",
            Self::Kvm => "kvm",
        }
    }
}
