//! CPUs that idle while a task waits that may run there, and who waits for longer than is
//! promised, watched in every case.

use anyhow::Result;
use sfs_waste::{total, Kind, Report, Span, Watch};

/// Room for the events of one case: some 760,000.
const BYTES: u32 = 64 << 20;

/// How many stretches are named.
const NAMED: usize = 3;

/// For so long the emulator may take to wake up an idle CPU: beyond that EEVDF wastes less
/// than half of [`SHARE`], and without it several per cent (docs/reliability.md). In ns.
const LATE_NS: u64 = 1_500_000;

/// How much of the CPU time may be wasted beyond that.
const SHARE: f64 = 0.001;

/// A single stretch that is not too long (`LONGEST_WASTE_MS` of sfs_suite) may have so much
/// beyond that, however short the case is. In ns.
const ONE_STRETCH_NS: u64 = 2_500_000;

/// How long waits may be, in ns; the table of docs/reliability.md has the promises. What waits
/// behind others in FILTER may do so for 10 s, and until the next look at it.
const PROMISES: [(Kind, u64); 2] = [(Kind::Kernel, 20_000_000), (Kind::Other, 11_000_000_000)];

/// Loads what watches.
///
/// # Errors
///
/// The kernel does not take it.
pub fn watch() -> Result<Watch> {
    Watch::load(BYTES)
}

/// Says what was wasted and who waited, if anything was: while scx_sfs was at work on `cpus`
/// CPUs (`spans`), and else, as while it was loaded and unloaded. What is not as promised is
/// in lines that begin with "too much wasted" or "waited too long", which `tests/run` fails
/// the case for.
pub fn notes(report: &Report, spans: &[Span], cpus: usize) -> Vec<String> {
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
    notes.extend(late(&under_scx_sfs, cpus));
    for kind in [Kind::Kernel, Kind::Short, Kind::Other] {
        notes.extend(under_scx_sfs.longest_wait(kind).map(ToString::to_string));
    }
    notes.extend(too_long(&under_scx_sfs));
    if report.wasted_ns() > under_scx_sfs.wasted_ns() {
        notes.push(format!("in all: {}", total(report)));
    }
    notes
}

/// Says what was wasted that the emulator is not to blame for, and whether it is too much.
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

/// Names for each promise the longest wait that does not keep it.
fn too_long(report: &Report) -> impl Iterator<Item = String> + '_ {
    PROMISES.iter().filter_map(|&(kind, most)| {
        // What is promised to all others is promised to each kind.
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
        notes(&report, &ALL, 4).into_iter().filter(fails).collect()
    }

    #[test]
    fn more_than_a_thousandth_beyond_the_way_is_too_much() {
        let too_much =
            "too much wasted: 4.01 ms beyond the first 1.5 ms of each, 0.100 % of the CPU time";
        assert_eq!(
            failures(1000, vec![stretch(LATE_NS + 4 * MS + 10_000)], vec![]),
            [too_much]
        );
        assert!(failures(1000, vec![stretch(LATE_NS + 4 * MS)], vec![]).is_empty());
        let on_the_way = (0..40).map(|i| Stretch {
            from_ns: 10 * i * MS,
            ..stretch(LATE_NS)
        });
        assert!(failures(1000, on_the_way.collect(), vec![]).is_empty());
    }

    #[test]
    fn one_stretch_of_a_tick_is_not_too_much_in_a_short_case() {
        assert!(failures(100, vec![stretch(4 * MS)], vec![]).is_empty());
    }

    #[test]
    fn who_waits_longer_than_promised_is_named() {
        let limits = [
            (Kind::Kernel, 20 * MS),
            (Kind::Short, 11_000 * MS),
            (Kind::Other, 11_000 * MS),
        ];
        for (kind, most) in limits {
            let report = |length| vec![wait(kind, length)];
            assert!(too_long(&with_waits(report(most))).next().is_none());
            let notes: Vec<_> = too_long(&with_waits(report(most + 10_000))).collect();
            assert_eq!(notes.len(), 1, "{notes:?}");
            assert!(notes[0].starts_with("waited too long: t (7, "), "{notes:?}");
        }
    }

    fn with_waits(waits: Vec<Wait>) -> Report {
        Report {
            waits,
            ..Report::default()
        }
    }
}
