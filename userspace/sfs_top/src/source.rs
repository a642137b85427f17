//! Takes samples: asks the scheduler, and reads the machine's files.

use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use sfs_cgroups::CGROUP_ROOT;
use sfs_statistics::{Connection, Unanswered};

use crate::machine::MachineReader;
use crate::sample::{Sample, Scheduler};
use crate::sandboxes::{Patterns, SandboxReader};
use crate::waste::Watcher;

/// Number of functions of a sample, those with the most work.
const FUNCTIONS: usize = 500;

/// Where samples come from.
pub struct Source {
    socket: Option<PathBuf>,
    connected: Option<Connected>,
    machine: MachineReader,
    sandboxes: SandboxReader,
    watcher: Watcher,
}

/// A connection to a scheduler, and what does not change while that runs.
struct Connected {
    connection: Connection,
    pid: Option<u64>,
    patterns: Patterns,
    asked_at: Option<Instant>,
}

impl Source {
    /// Asks the scheduler that serves at `socket`; None: where all scx schedulers do.
    pub fn new(socket: Option<PathBuf>) -> Self {
        Self {
            socket,
            connected: None,
            machine: MachineReader::new(Path::new("/proc")),
            sandboxes: SandboxReader::new(Path::new(CGROUP_ROOT)),
            watcher: Watcher::default(),
        }
    }

    /// Begins or ends to watch for wasted CPU time.
    ///
    /// # Errors
    ///
    /// A sentence: the kernel refuses it.
    pub fn watch_waste(&mut self, on: bool) -> Result<(), String> {
        self.watcher.set(on).map_err(|error| format!("{error:#}"))
    }

    /// Takes a sample. If no scheduler answers, returns why beside it.
    pub fn look(&mut self) -> (Sample, Option<Unanswered>) {
        let now = Instant::now();
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        let (scheduler, why) = match self.ask() {
            Ok(scheduler) => (Some(scheduler), None),
            Err(why) => {
                self.connected = None;
                (None, Some(why))
            }
        };
        let patterns = self.connected.as_ref().map(|one| &one.patterns);
        let named = patterns.filter(|patterns| !patterns.is_empty());
        let sandboxes = named.map(|patterns| self.sandboxes.look(patterns, now));
        let sample = Sample {
            time_s: since_epoch.map_or(0.0, |time| time.as_secs_f64()),
            scheduler,
            missing: why.as_ref().map(ToString::to_string),
            machine: self.machine.look(now),
            sandboxes,
            // A watch that fails has ended; the next one that is asked for says why.
            waste: self.watcher.look().unwrap_or_default(),
        };
        (sample, why)
    }

    /// Asks the scheduler; connects first if that is needed, also if the last scheduler has been
    /// replaced since.
    fn ask(&mut self) -> Result<Scheduler, Unanswered> {
        if let Some(mut connected) = self.connected.take() {
            if let Ok(scheduler) = connected.ask() {
                self.connected = Some(connected);
                return Ok(scheduler);
            }
        }
        let mut connected = Connected::open(self.socket.as_deref())?;
        let scheduler = connected.ask()?;
        self.connected = Some(connected);
        Ok(scheduler)
    }
}

impl Connected {
    fn open(socket: Option<&Path>) -> Result<Self, Unanswered> {
        let mut connection = Connection::open(socket)?;
        let report: Value = connection.ask("config", &[])?;
        Ok(Self {
            connection,
            pid: report["pid"].as_u64(),
            patterns: Patterns::of_configuration(&report),
            asked_at: None,
        })
    }

    fn ask(&mut self) -> Result<Scheduler, Unanswered> {
        let metrics = self.connection.metrics()?;
        let now = Instant::now();
        let interval_s = match self.asked_at.replace(now) {
            Some(before) => now.duration_since(before).as_secs_f64(),
            None => metrics.uptime_s as f64,
        };
        let functions = match metrics.functions {
            0 => Vec::new(),
            _ => self.connection.functions(FUNCTIONS)?,
        };
        Ok(Scheduler {
            pid: self.pid,
            metrics,
            interval_s,
            functions,
        })
    }
}
