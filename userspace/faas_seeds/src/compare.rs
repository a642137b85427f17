//! The rows of the report.

use crate::estimate::{holm, Estimate, Observation, LEVEL};
use crate::figure::{Figure, Part};
use crate::list::Series;
use crate::runs::Run;

/// One figure of one scheduler against the first one, at one load.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The requested load, if known.
    pub load: Option<String>,
    /// The name of the scheduler's row.
    pub name: String,
    /// Whether it is from a simulation.
    pub simulated: bool,
    /// The invocations that count.
    pub part: Part,
    /// The figure.
    pub figure: Figure,
    /// Number of seeds that there should be.
    pub planned: usize,
    /// What those seeds say in which both schedulers have the figure; `None` if there is
    /// no such seed.
    pub estimate: Option<Estimate>,
    /// The probability of the test, corrected for all rows of the report.
    pub corrected: Option<f64>,
    /// Whether 1 is outside of the interval after the correction, every seed has the
    /// figure, nothing but late arrivals speaks against a run of either scheduler, and both
    /// are live or both simulated.
    pub stands_out: bool,
}

/// What speaks against the runs of one scheduler at one load, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The load, if known.
    pub load: Option<String>,
    /// The name of the scheduler's row.
    pub name: String,
    /// As `ejected in seed 3; invocations failed in seed 7 (4)`.
    pub text: String,
    /// Whether rows with it can still stand out.
    pub is_mild: bool,
}

/// The comparison of a series.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The name of the first row, which the others are compared with.
    pub base: String,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// By how much arrivals are moved, if the seeds are copies of one trace.
    pub jitter: Option<String>,
    /// The smallest and the largest share of the invocations that is short by the gap, 0 to
    /// 1, if a trace has one.
    pub gap: Option<(f64, f64)>,
    /// The same of those that are not demoted, if a scheduler logs S.
    pub kept: Option<(f64, f64)>,
    /// The rows: by load, steady ones first, part, scheduler and figure. Those that no run
    /// has are left out.
    pub rows: Vec<Row>,
    /// What speaks against runs, the first scheduler's included.
    pub notes: Vec<Note>,
}

impl Comparison {
    /// Compares `runs`, which are those of `series`.
    pub fn new(series: &Series, runs: &[Run]) -> Self {
        let base = &series.rows[0];
        let mut seeds: Vec<u64> = runs.iter().map(|run| run.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        let mut parts: Vec<Part> = Vec::new();
        let values = runs.iter().flat_map(|run| &run.figures);
        values.for_each(|value| match parts.contains(&value.part) {
            true => {}
            false => parts.push(value.part),
        });
        let unit = match series.jitter {
            Some(_) => ("copy", "copies"),
            None => ("seed", "seeds"),
        };
        let (mut rows, mut notes) = (Vec::new(), Vec::new());
        for load in series.loads() {
            let of = |name: &str| of_row(runs, load, name);
            notes.extend(series.rows.iter().filter_map(|name| note(&of(name), unit)));
            for (part, name) in pairs(&parts, &series.rows[1..]) {
                let (base, own) = (of(base), of(name));
                let known = known(runs, load, part);
                rows.extend(known.map(|figure| row(&base, &own, part, figure)));
            }
        }
        correct(&mut rows);
        for row in &mut rows {
            let suspect = |note: &Note| {
                let is_of_it = note.name == row.name || note.name == *base;
                !note.is_mild && is_of_it && note.load == row.load
            };
            row.stands_out &= !notes.iter().any(suspect);
        }
        Self {
            base: base.clone(),
            seeds,
            jitter: series.jitter.clone(),
            gap: range(runs.iter().filter_map(|run| run.gap)),
            kept: range(runs.iter().filter_map(|run| run.kept)),
            rows,
            notes,
        }
    }
}

/// Each part with each name.
fn pairs<'a>(parts: &'a [Part], names: &'a [String]) -> impl Iterator<Item = (Part, &'a String)> {
    let of_part = |part: &'a Part| names.iter().map(|name| (*part, name));
    parts.iter().flat_map(of_part)
}

/// The figures that any run has at this load.
fn known<'a>(
    runs: &'a [Run],
    load: Option<&'a str>,
    part: Part,
) -> impl Iterator<Item = Figure> + 'a {
    let has = move |figure: &Figure| {
        let mut at_load = runs.iter().filter(|run| run.load.as_deref() == load);
        at_load.any(|run| run.figure(part, *figure).is_some())
    };
    Figure::ALL.into_iter().filter(has)
}

/// The smallest and the largest.
fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let both = |(low, high): (f64, f64), value: f64| (low.min(value), high.max(value));
    let mut values = values;
    let first = values.next()?;
    Some(values.fold((first, first), both))
}

/// The runs of one row at one load, in the order of the repetitions.
fn of_row<'a>(runs: &'a [Run], load: Option<&str>, name: &str) -> Vec<&'a Run> {
    let all = runs.iter();
    all.filter(|run| run.load.as_deref() == load && run.row == name)
        .collect()
}

/// One row; whether it stands out is known after the correction.
fn row(base: &[&Run], own: &[&Run], part: Part, figure: Figure) -> Row {
    let pairs = own.iter().zip(base);
    let observed: Vec<Observation> = pairs
        .filter_map(|(own, base)| {
            let (own_value, base_value) = (own.figure(part, figure)?, base.figure(part, figure)?);
            Some(Observation {
                seed: own.seed,
                ratio: own_value / base_value,
            })
        })
        .collect();
    let simulated = |runs: &[&Run]| runs.iter().any(|run| run.simulated);
    Row {
        load: own[0].load.clone(),
        name: own[0].row.clone(),
        simulated: simulated(own),
        part,
        figure,
        planned: own.len(),
        estimate: Estimate::of(&observed),
        corrected: None,
        stands_out: observed.len() == own.len() && simulated(own) == simulated(base),
    }
}

/// Corrects the probabilities of all rows that have one.
fn correct(rows: &mut [Row]) {
    let p = |row: &Row| Some(row.estimate?.test?.p);
    let all: Vec<f64> = rows.iter().filter_map(p).collect();
    let mut corrected = holm(&all).into_iter();
    for row in rows {
        row.corrected = p(row).and_then(|_| corrected.next());
        row.stands_out &= row.corrected.is_some_and(|p| p < LEVEL);
    }
}

/// What speaks against these runs of one row, if anything does; `unit` is the word for one
/// and for several of them.
fn note(runs: &[&Run], unit: (&str, &str)) -> Option<Note> {
    let mut kinds: Vec<(&str, Vec<String>)> = Vec::new();
    for run in runs {
        for trouble in &run.troubles {
            let count = trouble
                .count
                .map_or(String::new(), |count| format!(" ({count})"));
            let seed = format!("{}{count}", run.seed);
            match kinds.iter_mut().find(|(what, _)| *what == trouble.what) {
                Some((_, seeds)) => seeds.push(seed),
                None => kinds.push((&trouble.what, vec![seed])),
            }
        }
    }
    let of_kind = |(what, seeds): &(&str, Vec<String>)| {
        let unit = if seeds.len() > 1 { unit.1 } else { unit.0 };
        format!("{what} in {unit} {}", seeds.join(", "))
    };
    let texts: Vec<String> = kinds.iter().map(of_kind).collect();
    let mut troubles = runs.iter().flat_map(|run| &run.troubles);
    (!texts.is_empty()).then(|| Note {
        load: runs[0].load.clone(),
        name: runs[0].row.clone(),
        text: texts.join("; "),
        is_mild: troubles.all(|trouble| trouble.is_mild),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs;
    use crate::testing::{Folder, Made};
    use faas_data::summary::Status;

    /// Six seeds in which `b` takes about half of the time of `a`, and what else `put` does.
    fn compare(put: impl Fn(&Folder)) -> Comparison {
        let folder = Folder::new(&["a", "b"], &[1, 2, 3, 4, 5, 6]);
        for seed in 1..=6 {
            folder.put(seed, "a", Made::times(20));
            folder.put(seed, "b", Made::times(10 + seed % 2));
        }
        put(&folder);
        let series = folder.series();
        Comparison::new(&series, &runs::read(&series, folder.path(), None).unwrap())
    }

    fn standing_out(comparison: &Comparison) -> usize {
        comparison.rows.iter().filter(|row| row.stands_out).count()
    }

    #[test]
    fn a_clear_difference_stands_out() {
        let clear = compare(|_| ());
        assert_eq!((clear.rows.len(), standing_out(&clear)), (8, 8));
        assert_eq!((clear.base.as_str(), clear.notes.len()), ("a", 0));
        let estimate = clear.rows[0].estimate.unwrap();
        assert!((estimate.ratio - (0.5 * 0.55f64).sqrt()).abs() < 1e-9);
        assert_eq!(
            (estimate.smallest.seed % 2, estimate.largest.seed % 2),
            (0, 1)
        );
        // Equal rows: each is corrected for all eight.
        let p = estimate.test.unwrap().p;
        let corrected = clear.rows[7].corrected.unwrap();
        assert!(
            (corrected / (8.0 * p) - 1.0).abs() < 1e-6,
            "{corrected} of {p}"
        );
    }

    #[test]
    fn no_difference_does_not_stand_out() {
        let same =
            compare(|folder| (1..=6).for_each(|seed| folder.put(seed, "b", Made::times(20))));
        assert_eq!(standing_out(&same), 0);
        assert_eq!(same.rows[0].corrected, Some(1.0));
    }

    #[test]
    fn a_trouble_of_either_counts_against_the_row() {
        for name in ["a", "b"] {
            let failed = compare(|folder| {
                folder.put(
                    3,
                    name,
                    Made {
                        failed: 2,
                        ..Made::times(12)
                    },
                );
                let gone = Made {
                    status: Status::Ejected,
                    ..Made::times(12)
                };
                folder.put(5, name, gone);
            });
            assert_eq!(standing_out(&failed), 0);
            let row = &failed.rows[0];
            assert_eq!((row.planned, row.estimate.unwrap().seeds), (6, 5));
            let text = "invocations failed in seed 3 (2); ejected in seed 5";
            assert_eq!(
                (failed.notes[0].name.as_str(), failed.notes[0].text.as_str()),
                (name, text)
            );
        }
    }

    #[test]
    fn late_arrivals_are_shown_and_a_row_can_still_stand_out() {
        let late = compare(|folder| {
            let late = Made {
                is_late: true,
                ..Made::times(10)
            };
            folder.put(4, "b", late);
        });
        assert_eq!(standing_out(&late), 8);
        assert_eq!(late.notes[0].text, "arrivals late in seed 4");
    }

    #[test]
    fn a_figure_that_a_seed_lacks_does_not_stand_out() {
        // The longest two fail, so nothing is long.
        let lacking = compare(|folder| {
            folder.put(
                3,
                "b",
                Made {
                    failed: 10,
                    ..Made::times(12)
                },
            );
        });
        assert_eq!(lacking.rows[0].estimate.unwrap().seeds, 5);
        assert_eq!(standing_out(&lacking), 0);
        let none = compare(|folder| {
            let lost = Made {
                status: Status::Lost,
                ..Made::times(1)
            };
            (1..=6).for_each(|seed| folder.put(seed, "b", lost));
        });
        assert!(none
            .rows
            .iter()
            .all(|row| row.estimate.is_none() && row.corrected.is_none()));
        assert_eq!(
            none.notes[0].text,
            "lost with its machine in seeds 1, 2, 3, 4, 5, 6"
        );
    }

    #[test]
    fn each_load_has_its_pairs_and_all_rows_are_one_family() {
        let folder = Folder::new(&["a", "b"], &[1, 2, 3, 4]);
        let mut series = folder.series();
        for (seed, load) in [(1, "1.2"), (2, "1.2"), (3, "0.5"), (4, "0.5")] {
            folder.put(seed, "a", Made::times(20));
            folder.put(seed, "b", Made::times(9 + seed));
            series.repetitions[seed as usize - 1].load = Some(load.into());
        }
        let runs = runs::read(&series, folder.path(), Some(10)).unwrap();
        let both = Comparison::new(&series, &runs);
        // The only long one is the last, which is left out with the first.
        assert_eq!((both.rows.len(), both.rows[0].planned), (2 * (8 + 7), 2));
        let at = |row: &Row| (row.load.clone().unwrap(), row.part);
        assert_eq!(at(&both.rows[0]), ("0.5".to_string(), Part::All));
        assert_eq!(at(&both.rows[8]), ("0.5".to_string(), Part::Middle(10)));
        assert_eq!(at(&both.rows[15]), ("1.2".to_string(), Part::All));
        let estimate = both.rows[0].estimate.unwrap();
        assert_eq!((estimate.smallest.seed, estimate.largest.seed), (3, 4));
        assert_eq!((both.gap, both.kept), (Some((0.5, 0.5)), None));
    }
}
