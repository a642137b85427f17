//! The watch in every case for CPUs that idle while a task waits that may run there, and for
//! waits longer than promised.

use anyhow::Result;
use sfs_waste::{total, Kind, Report, Span, Watch};

/// Size of the buffer for the events of a case, some 760,000.
const BYTES: u32 = 64 << 20;

/// Number of stretches that are listed.
const NAMED: usize = 3;

/// Time in ns that the emulator may take to wake up an idle CPU. Beyond it EEVDF wastes less
/// than half of [`SHARE`], and with it several per cent (docs/reliability.md).
const LATE_NS: u64 = 1_500_000;

/// Limit of the share of CPU time wasted beyond [`LATE_NS`].
const SHARE: f64 = 0.001;

/// Time in ns that may be wasted beyond [`LATE_NS`] however short the case is: that of a single
/// stretch which is not too long (`LONGEST_WASTE_MS` of sfs_suite).
const ONE_STRETCH_NS: u64 = 2_500_000;

/// Limits of waits in ns; the table of docs/reliability.md has the promises. A task may wait
/// behind others in FILTER for 10 s, and until the next check.
const PROMISES: [(Kind, u64); 2] = [(Kind::Kernel, 20_000_000), (Kind::Other, 11_000_000_000)];

/// Number of CPUs for which [`PROMISES`] hold in the emulator.
///
/// With `icount` all emulated CPUs share one stream of instructions, so each busy CPU gets
/// 1/CPUs of it, and the same work takes more virtual time the more CPUs are busy.
const FULL_SPEED_CPUS: u64 = 8;

/// The machine on which the cases run.
#[derive(Debug, Clone, Copy)]
pub struct Machine {
    /// Number of CPUs.
    pub cpus: usize,
    /// The CPUs share one stream of instructions (`vm/run --accel icount`).
    pub shares_stream: bool,
}

impl Machine {
    /// This machine, which has `cpus` CPUs; `vm/run` tells how they are implemented.
    pub fn this(cpus: usize) -> Self {
        Machine {
            cpus,
            shares_stream: std::env::var("VM_ACCEL").is_ok_and(|accel| accel == "icount"),
        }
    }

    /// The limit in ns of a wait whose promise is `promise_ns`. Kernel workers wait for work;
    /// the promise to all others is the guard's, whose timers are as fast with many CPUs.
    fn limit_ns(self, kind: Kind, promise_ns: u64) -> u64 {
        let cpus = u64::try_from(self.cpus).unwrap_or(u64::MAX);
        match kind == Kind::Kernel && self.shares_stream && cpus > FULL_SPEED_CPUS {
            true => promise_ns.saturating_mul(cpus) / FULL_SPEED_CPUS,
            false => promise_ns,
        }
    }
}

/// Loads the watch.
///
/// # Errors
///
/// The kernel refuses its BPF programs.
pub fn watch() -> Result<Watch> {
    Watch::load(BYTES)
}

/// Describes wasted CPU time and long waits, if any: while scx_sfs was enabled (`spans`) on
/// `machine`, and in all, loading and unloading included. For lines that begin with "too much
/// wasted" or "waited too long", which are broken promises, `tests/run` fails the case.
pub fn notes(report: &Report, spans: &[Span], machine: Machine) -> Vec<String> {
    let mut notes = Vec::new();
    if report.lost > 0 {
        notes.push(format!("{} scheduling events were lost", report.lost));
    }
    let under_scx_sfs = report.during(spans);
    if under_scx_sfs.wasted_ns() > 0 {
        notes.push(format!("under scx_sfs: {}", total(&under_scx_sfs)));
    }
    let longest = under_scx_sfs.longest(NAMED).into_iter();
    notes.extend(longest.map(ToString::to_string));
    notes.extend(late(&under_scx_sfs, machine.cpus));
    for kind in [Kind::Kernel, Kind::Short, Kind::Other] {
        notes.extend(under_scx_sfs.longest_wait(kind).map(ToString::to_string));
    }
    notes.extend(too_long(&under_scx_sfs, machine));
    if report.wasted_ns() > under_scx_sfs.wasted_ns() {
        notes.push(format!("in all: {}", total(report)));
    }
    notes
}

/// Describes the CPU time wasted beyond the emulator's own delay, and whether it is too much.
fn late(report: &Report, cpus: usize) -> Option<String> {
    let wasted_ns = report.beyond(LATE_NS).wasted_ns();
    let share = wasted_ns as f64 / (report.watched_ns() as f64 * cpus as f64);
    let too_much = share > SHARE && wasted_ns > ONE_STRETCH_NS;
    (wasted_ns > 0).then(|| {
        format!(
            "{}{:.2} ms beyond the first {} ms of each, {:.3} % of the CPU time",
            if too_much { "too much wasted: " } else { "" },
            wasted_ns as f64 / 1e6,
            LATE_NS as f64 / 1e6,
            share * 100.0
        )
    })
}

/// Describes for each promise the longest wait that breaks it.
fn too_long(report: &Report, machine: Machine) -> impl Iterator<Item = String> + '_ {
    PROMISES.iter().filter_map(move |&(kind, promise)| {
        let most = machine.limit_ns(kind, promise);
        // The promise to `Other` holds for every kind.
        let kinds = [Kind::Kernel, Kind::Short, Kind::Other];
        let kinds = kinds
            .into_iter()
            .filter(|one| kind == Kind::Other || *one == kind);
        let longest = kinds.filter_map(|one| report.longest_wait(one));
        let longest = longest.max_by_key(|wait| wait.length_ns)?;
        (longest.length_ns > most).then(|| {
            format!(
                "waited too long: {longest}; it is promised {} ms at most",
                most / 1_000_000
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use sfs_waste::{Stretch, Wait};

    use super::*;

    const MS: u64 = 1_000_000;
    const FOUR_CPUS: Machine = Machine {
        cpus: 4,
        shares_stream: true,
    };
    const ALL: [Span; 1] = [(0, 10_000 * MS)];

    fn stretch(length_ns: u64) -> Stretch {
        Stretch {
            from_ns: 5 * MS,
            length_ns,
            thread: 7,
            name: "t".into(),
            cpu: 1,
        }
    }

    fn wait(kind: Kind, length_ns: u64) -> Wait {
        Wait {
            from_ns: 0,
            length_ns,
            thread: 7,
            name: "t".into(),
            kind,
            behind: Vec::new(),
        }
    }

    fn failures(watched_ms: u64, stretches: Vec<Stretch>, waits: Vec<Wait>) -> Vec<String> {
        let report = Report {
            watched: vec![(0, watched_ms * MS)],
            stretches,
            waits,
            lost: 0,
        };
        let fails = |note: &String| note.starts_with("too much") || note.contains("too long");
        notes(&report, &ALL, FOUR_CPUS)
            .into_iter()
            .filter(fails)
            .collect()
    }

    #[test]
    fn more_than_a_thousandth_beyond_the_wake_ups_is_too_much() {
        let too_much =
            "too much wasted: 4.01 ms beyond the first 1.5 ms of each, 0.100 % of the CPU time";
        assert_eq!(
            failures(1000, vec![stretch(LATE_NS + 4 * MS + 10_000)], vec![]),
            [too_much]
        );
        assert!(failures(1000, vec![stretch(LATE_NS + 4 * MS)], vec![]).is_empty());
        let wake_ups = (0..40).map(|i| Stretch {
            from_ns: 10 * i * MS,
            ..stretch(LATE_NS)
        });
        assert!(failures(1000, wake_ups.collect(), vec![]).is_empty());
    }

    #[test]
    fn one_stretch_of_a_tick_is_not_too_much_in_a_short_case() {
        assert!(failures(100, vec![stretch(4 * MS)], vec![]).is_empty());
    }

    #[test]
    fn waits_longer_than_promised_are_described() {
        let limits = [
            (Kind::Kernel, 20 * MS),
            (Kind::Short, 11_000 * MS),
            (Kind::Other, 11_000 * MS),
        ];
        for (kind, most) in limits {
            let report = |length| vec![wait(kind, length)];
            assert!(too_long(&with_waits(report(most)), FOUR_CPUS)
                .next()
                .is_none());
            let too_much = with_waits(report(most + 10_000));
            let notes: Vec<_> = too_long(&too_much, FOUR_CPUS).collect();
            assert_eq!(notes.len(), 1, "{notes:?}");
            assert!(notes[0].starts_with("waited too long: t (7, "), "{notes:?}");
        }
    }

    #[test]
    fn busy_cpus_that_share_a_stream_of_instructions_stretch_a_workers_wait() {
        let machine = |cpus, shares_stream| Machine {
            cpus,
            shares_stream,
        };
        let most = |machine: Machine, kind| machine.limit_ns(kind, 20 * MS);
        assert_eq!(most(machine(8, true), Kind::Kernel), 20 * MS);
        assert_eq!(most(machine(64, true), Kind::Kernel), 160 * MS);
        assert_eq!(most(machine(64, false), Kind::Kernel), 20 * MS);
        assert_eq!(most(machine(64, true), Kind::Other), 20 * MS);
    }

    fn with_waits(waits: Vec<Wait>) -> Report {
        Report {
            waits,
            ..Report::default()
        }
    }
}
