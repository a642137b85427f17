//! A series on disk, for tests.

use crate::compare::Comparison;
use crate::list::{Repetition, Series};
use crate::runs::{self, Run};
use faas_data::result::{self, Exit, Record};
use faas_data::summary::slice::SliceLog;
use faas_data::summary::{json, summarise, SchedulerInfo, Setting, Status};
use faas_data::trace::{self, Invocation, Trace};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A run to be made up.
#[derive(Debug, Clone, Copy)]
pub struct Made {
    /// All invocations take this many times their service time.
    pub times: u64,
    pub status: Status,
    /// The first ones fail.
    pub failed: usize,
    pub kernel: &'static str,
    /// S, if it is logged.
    pub s_ms: Option<f64>,
    pub is_late: bool,
}

impl Made {
    pub fn times(times: u64) -> Self {
        Self {
            times,
            status: Status::Ok,
            failed: 0,
            kernel: "k",
            s_ms: None,
            is_late: false,
        }
    }
}

/// A series whose seeds have ten invocations each, of 1 to 10 ms and `trace` microseconds.
pub struct Folder {
    folder: TempDir,
    series: Series,
}

impl Folder {
    pub fn new(rows: &[&str], seeds: &[u64]) -> Self {
        let repetition = |seed: &u64| Repetition {
            seed: *seed,
            load: None,
            folder: format!("seed-{seed}").into(),
        };
        let rows = rows.iter().map(|row| row.to_string()).collect();
        let made = Self {
            folder: tempfile::tempdir().unwrap(),
            series: Series::new(rows, seeds.iter().map(repetition).collect()),
        };
        for seed in seeds {
            std::fs::create_dir(made.place(*seed)).unwrap();
            made.put_trace(*seed, *seed);
        }
        made
    }

    pub fn series(&self) -> Series {
        self.series.clone()
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    fn place(&self, seed: u64) -> PathBuf {
        self.path().join(format!("seed-{seed}"))
    }

    pub fn put_trace(&self, seed: u64, number: u64) {
        let invocations: Vec<Invocation> = (0..10)
            .map(|id| Invocation::cpu(id * 10_000, "f", 1000 * (id + 1) + number))
            .collect();
        std::fs::write(self.place(seed).join("t.csv"), trace::to_csv(&invocations)).unwrap();
    }

    /// Writes summary and result of a run.
    pub fn put(&self, seed: u64, row: &str, made: Made) {
        let trace = Trace::read(&self.place(seed).join("t.csv")).unwrap();
        let record = |(id, one): (usize, &Invocation)| Record {
            id,
            function: one.function.clone(),
            arrival_us: one.arrival_us,
            start_us: Some(one.arrival_us),
            end_us: Some(one.arrival_us + made.times * one.service_us()),
            cpu_us: one.service_us(),
            service_us: one.service_us(),
            voluntary_switches: 0,
            involuntary_switches: 0,
            exit: Exit::Code(u32::from(id < made.failed)),
            runqueue_wait_us: None,
            alone_us: None,
        };
        let mut records: Vec<Record> = trace.invocations.iter().enumerate().map(record).collect();
        if made.status == Status::Lost {
            records.clear();
        }
        let setting = Setting {
            cpus: 4,
            scheduler: SchedulerInfo {
                name: row.to_string(),
                version: "1".into(),
                args: String::new(),
                status: made.status,
                detail: String::new(),
            },
            kernel: made.kernel.into(),
            accel: "icount".into(),
            sandbox: None,
        };
        // A second is more than a hundredth of any turnaround here.
        let lag_ns: &[u64] = if made.is_late { &[1_000_000_000] } else { &[] };
        let mut summary = summarise(&trace, &records, &setting, lag_ns);
        summary.slice = made.s_ms.map(|s_ms| SliceLog {
            at_ms: vec![0.0],
            s_ms: vec![s_ms],
            fair_only: vec![false],
        });
        let place = |kind: &str| self.place(seed).join(format!("{row}.{kind}"));
        std::fs::write(place("json"), json::to_text(&summary).unwrap()).unwrap();
        if made.status != Status::Lost {
            std::fs::write(place("csv"), result::to_csv(&records)).unwrap();
        }
    }
}

/// Four seeds in which `b` takes about half of the time of `a`, and `c` is ejected once.
pub fn ejected_once() -> (Comparison, Vec<Run>) {
    let folder = Folder::new(&["a", "b", "c"], &[1, 2, 3, 4]);
    for seed in 1..=4 {
        folder.put(seed, "a", Made::times(100));
        folder.put(seed, "b", Made::times(49 + seed % 3));
        folder.put(seed, "c", Made::times(40 + seed));
    }
    let ejected = Made {
        status: Status::Ejected,
        ..Made::times(100)
    };
    folder.put(2, "c", ejected);
    let series = folder.series();
    let runs = runs::read(&series, folder.path(), None).unwrap();
    (Comparison::new(&series, &runs), runs)
}
