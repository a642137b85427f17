//! The `run` command: sets the scheduler up, replays, writes the result.

use crate::scheduler::{kernel_release, open_log, Kind, Scheduler};
use crate::session::Session;
use crate::waste::{Wasted, Watch};
use anyhow::{bail, Context, Result};
use faas_data::kind::Defaults;
use faas_data::output::{note, print, Output};
use faas_data::progress::Progress;
use faas_data::result::{self, Record};
use faas_data::summary::fixed::Calibration;
use faas_data::summary::refill::Refill;
use faas_data::summary::slice::SliceLog;
use faas_data::summary::{json, summarise, SandboxInfo, SchedulerInfo, Setting, Status, Summary};
use faas_data::trace::Trace;
use faas_fixed::rates::Rates;
use faas_replay::cgroup::Layout;
use faas_replay::prepare::prepare;
use faas_replay::refill::Amounts;
use faas_replay::setup::{Sandboxes, Setup};
use faas_replay::{cpus, realtime, replay, Measured};
use std::fs::File;
use std::path::{Path, PathBuf};

/// The run.
#[derive(Debug, Clone)]
pub struct Run {
    /// The trace.
    pub trace: PathBuf,
    /// The scheduler.
    pub scheduler: Scheduler,
    /// The scheduler's arguments as the user wrote them, for the summary.
    pub args: String,
    /// The name of the row and of its files.
    pub name: String,
    /// Number of CPUs to use.
    pub cpus: u32,
    /// Folder for the files.
    pub out: PathBuf,
    /// How the machine's CPUs are implemented, for the summary.
    pub accel: String,
    /// What serves the invocations; `None`: a running platform.
    pub sandboxes: Option<Sandboxes>,
    /// The kinds of phases for which the trace has none.
    pub defaults: Defaults,
    /// How demands grow at switches, if they do.
    pub refill: Option<Amounts>,
    /// How much the calibration of fixed work may vary, in per cent.
    pub max_spread: u32,
    /// Whether to watch for wasted CPUs, which costs something at each switch.
    pub is_watched: bool,
}

/// Space reserved for a summary.
const SUMMARY_BYTES: u64 = 64 << 10;

/// The files that a run writes, opened before anything is measured.
struct Outputs {
    csv: Output,
    json: Output,
    log: Option<File>,
}

impl Outputs {
    /// Opens them, and reserves room for their content.
    fn open(run: &Run, trace: &Trace) -> Result<Self> {
        let cannot = || format!("cannot create the folder {}", run.out.display());
        std::fs::create_dir_all(&run.out).with_context(cannot)?;
        let path = |suffix| run.out.join(format!("{}.{suffix}", run.name));
        let log = match run.scheduler.has_log() {
            false => None,
            true => Some(open_log(&path("log"))?),
        };
        let outputs = Self {
            csv: Output::create(&path("csv"))?,
            json: Output::create(&path("json"))?,
            log,
        };
        outputs
            .csv
            .reserve(result::most_bytes(&trace.invocations))?;
        outputs.json.reserve(SUMMARY_BYTES)?;
        Ok(outputs)
    }

    /// Writes them. If that fails nevertheless, the summary goes to standard
    /// output instead of being lost.
    fn write(self, records: &[Record], summary: &Summary) -> Result<()> {
        let text = json::to_text(summary)?;
        let csv = self.csv.commit(result::to_csv(records).as_bytes());
        let json = self.json.commit(text.as_bytes());
        let written = csv.and(json);
        if written.is_err() {
            print(text.as_bytes())?;
        }
        written.context("the summary is on standard output instead")
    }
}

impl Run {
    /// Runs it and writes `OUT/<name>.csv` and `OUT/<name>.json`, and for a
    /// sched_ext scheduler its output in `OUT/<name>.log`.
    ///
    /// # Errors
    /// If anything is wrong before the replay, or the replay is not completed.
    /// A scheduler that did not load or stay loaded is not an error; see the
    /// summary's status.
    pub fn execute(self) -> Result<Summary> {
        let trace = Trace::read(&self.trace)?;
        self.check()?;
        let pin = pin(self.cpus)?;
        let mut setup = self.setup(pin);
        // Before any scheduler but the kernel's own is there.
        let calibration = prepare(&mut setup, &trace, self.cpus, &self.accel, self.max_spread)?;
        self.carry_out(&trace, pin, calibration, || self.measure(&trace, &setup))
    }

    /// Checks that the machine is ready.
    ///
    /// # Errors
    /// If the scheduler cannot be loaded or real-time priority is not permitted,
    /// or if the scheduler cannot see such invocations.
    pub(crate) fn check(&self) -> Result<()> {
        self.scheduler.check_machine()?;
        let is_process = self.sandboxes == Some(Sandboxes::Process);
        if !is_process && self.scheduler.daemon(self.cpus, 0).is_some() {
            bail!(
                "the daemon of {} sees an invocation as a new process of the replay: \
                 want `faasbench run --sandbox process`",
                self.name
            );
        }
        if !realtime::permitted() {
            bail!("{}", realtime::HOW_TO_PERMIT);
        }
        Ok(())
    }

    /// Sets the scheduler up, calls `measure` if it has loaded, stops it and
    /// writes the files. A daemon is restricted to `pin` CPUs, 0 for all.
    pub(crate) fn carry_out(
        &self,
        trace: &Trace,
        pin: u32,
        calibration: Option<Calibration>,
        measure: impl FnOnce() -> Result<Measured>,
    ) -> Result<Summary> {
        let mut outputs = Outputs::open(self, trace)?;
        let daemon = self.scheduler.daemon(self.cpus, pin);
        let mut session = self.scheduler.start(daemon.as_ref(), outputs.log.take())?;
        let (measured, wasted): (Measured, Option<Wasted>) = if session.is_loaded() {
            let watch = self.is_watched.then(|| Watch::begin(trace, self.cpus));
            let measured = measure()?;
            (measured, watch.flatten().and_then(Watch::end))
        } else {
            (Measured::default(), None)
        };
        // While they are in force.
        let task_slice_ns = self.scheduler.settings.task_slice_ns;
        let settings = faas_baselines::machine::read(&kernel_release(), task_slice_ns);
        session.finish();
        let mut summary = self.summary(trace, &session, &measured);
        summary.kernel_settings = Some(settings);
        if let Some(work) = &mut summary.fixed_work {
            work.calibration = calibration;
        }
        summary.daemon = session.daemon.take();
        let grown = self.refill.filter(|_| session.is_loaded());
        summary.refill = grown.map(|amounts| Refill::of(amounts.0, measured.refills.0));
        summary.slice = self.slice(&measured);
        summary.wasted_ms = wasted.map(|wasted| wasted.wasted_ms);
        summary.longest_wasted_ms = wasted.map(|wasted| wasted.longest_wasted_ms);
        outputs.write(&measured.records, &summary)?;
        Ok(summary)
    }

    /// How to replay, on `pin` CPUs, before anything is calibrated.
    fn setup(&self, pin: u32) -> Setup {
        Setup {
            policy: self.scheduler.policy(),
            pin,
            sandboxes: self.sandboxes.unwrap_or(Sandboxes::Process),
            defaults: self.defaults,
            rates: Rates::default(),
            refill: self.refill,
        }
    }

    fn measure(&self, trace: &Trace, setup: &Setup) -> Result<Measured> {
        let invocations = trace.invocations.len() as u64;
        let progress = Progress::new(&self.name, invocations, "invocations");
        if !progress.is_watched() {
            return replay(trace, setup, None);
        }
        replay(trace, setup, Some(&|done| progress.at(done)))
    }

    /// S and the mode over time, from the scheduler's log; unreadable lines are
    /// ignored.
    fn slice(&self, measured: &Measured) -> Option<SliceLog> {
        if matches!(self.scheduler.kind, Kind::Kernel(_)) || measured.records.is_empty() {
            return None;
        }
        let log = std::fs::read(self.out.join(format!("{}.log", self.name))).ok()?;
        SliceLog::parse(&String::from_utf8_lossy(&log), measured.origin_ns / 1000)
    }

    fn summary(&self, trace: &Trace, session: &Session, measured: &Measured) -> Summary {
        let trouble = session.trouble.clone();
        let (status, detail) = trouble.unwrap_or((Status::Ok, String::new()));
        let setting = Setting {
            cpus: self.cpus,
            scheduler: SchedulerInfo {
                name: self.name.clone(),
                version: session.version.clone(),
                args: self.args.clone(),
                status,
                detail,
            },
            kernel: kernel_release(),
            accel: self.accel.clone(),
            sandbox: Some(sandbox_info(self.sandboxes, measured)),
        };
        summarise(trace, &measured.records, &setting, &measured.lag_ns)
    }
}

/// The sandboxes for the summary.
fn sandbox_info(sandboxes: Option<Sandboxes>, measured: &Measured) -> SandboxInfo {
    let Some(Sandboxes::Warm(warm)) = sandboxes else {
        let kind = sandboxes.map_or("platform", |_| "process");
        return SandboxInfo {
            kind: kind.to_string(),
            ..SandboxInfo::default()
        };
    };
    let kind = if warm.cgroup.is_some() {
        "cgroup"
    } else {
        "warm"
    };
    let nested = warm
        .cgroup
        .is_some_and(|limits| limits.layout == Layout::Nested);
    SandboxInfo {
        kind: kind.to_string(),
        handler: warm.forks.then(|| "fork".to_string()),
        prestarted: Some(measured.pool.prestarted),
        cold_starts: Some(measured.pool.cold_starts),
        died: Some(measured.pool.died),
        cpu_weight: warm.cgroup.map(|limits| limits.weight),
        cpu_quota_percent: warm.cgroup.and_then(|limits| limits.quota_percent),
        cgroup_layout: nested.then(|| "nested".to_string()),
    }
}

/// The number of CPUs to restrict the children to so that they have `cpus`; 0
/// if the machine has exactly that many.
fn pin(cpus: u32) -> Result<u32> {
    let here = usable_cpus()?;
    if cpus > here {
        bail!("--cpus is {cpus}, but only {here} CPUs can be used here");
    }
    if cpus == here {
        return Ok(0);
    }
    note(&format!(
        "note: the invocations are restricted to {cpus} of {here} CPUs, which sched_ext \
         schedulers may treat differently from a machine of that size"
    ));
    Ok(cpus)
}

/// Number of CPUs that this process may use.
pub(crate) fn usable_cpus() -> Result<u32> {
    let cpus = cpus::usable().context("cannot count the CPUs")?;
    Ok(cpus.len() as u32)
}

/// Checks that `name` can be the name of a file.
///
/// # Errors
/// If it is empty, hidden or has a slash.
pub fn check_name(name: &str) -> Result<String, String> {
    let plain = Path::new(name).file_name().is_some_and(|base| base == name);
    if !plain || name.starts_with('.') || !faas_data::input::is_name(name) {
        return Err("want a name such as scx_sfs-2: no slash, space, comma or leading dot".into());
    }
    Ok(name.to_string())
}
