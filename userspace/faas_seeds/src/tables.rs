//! The report for the terminal and as Markdown.

use crate::compare::{Comparison, Row};
use crate::estimate::Observation;
use crate::list::is_steady;
use comfy_table::{CellAlignment, LineStyle, Table as Grid, TableStyle};
use faas_report::words::wrap;

/// Columns of text on the terminal.
const COLUMNS: usize = 80;

/// A column of the table.
struct Column {
    head: &'static str,
    cell: fn(&Row) -> String,
    is_text: bool,
}

const COLUMNS_OF_ALL: [Column; 8] = [
    column("scheduler", name, true),
    column("figure", |row| row.figure.name().to_string(), true),
    column("seeds", seeds, false),
    column("ratio", |row| shown(row, |it| Some(ratio(it.ratio))), false),
    column("95 % interval", interval, false),
    column(
        "smallest (seed)",
        |row| shown(row, |it| Some(observation(it.smallest))),
        false,
    ),
    column(
        "largest (seed)",
        |row| shown(row, |it| Some(observation(it.largest))),
        false,
    ),
    column(
        "p",
        |row| row.corrected.map_or(NONE.into(), probability),
        false,
    ),
];

const LOAD: Column = column("load", |row| row.load.clone().unwrap_or(NONE.into()), false);

const PART: Column = column("invocations", |row| row.part.name(), true);

/// Shown in place of what is not known.
const NONE: &str = "-";

const fn column(head: &'static str, cell: fn(&Row) -> String, is_text: bool) -> Column {
    Column {
        head,
        cell,
        is_text,
    }
}

fn name(row: &Row) -> String {
    let simulated = if row.simulated { " (sim)" } else { "" };
    format!("{}{simulated}", row.name)
}

/// `5`, or `4 of 5` if one has no ratio.
fn seeds(row: &Row) -> String {
    let there = row.estimate.map_or(0, |estimate| estimate.seeds);
    match there == row.planned {
        true => there.to_string(),
        false => format!("{there} of {}", row.planned),
    }
}

fn shown(row: &Row, of: fn(&crate::estimate::Estimate) -> Option<String>) -> String {
    row.estimate.as_ref().and_then(of).unwrap_or(NONE.into())
}

fn interval(row: &Row) -> String {
    shown(row, |estimate| {
        let test = estimate.test?;
        Some(format!("{} to {}", ratio(test.low), ratio(test.high)))
    })
}

fn ratio(value: f64) -> String {
    format!("{value:.3}")
}

fn observation(one: Observation) -> String {
    format!("{} ({})", ratio(one.ratio), one.seed)
}

/// Rounded up, so that nothing looks better than it is.
fn probability(p: f64) -> String {
    match p < 0.001 {
        true => "<0.001".to_string(),
        false => format!("{:.3}", (1e3 * p).ceil() / 1e3),
    }
}

/// The columns that say something: those of load and part only if there are several.
fn columns(comparison: &Comparison) -> Vec<&'static Column> {
    let Some(first) = comparison.rows.first() else {
        return COLUMNS_OF_ALL.iter().collect();
    };
    let rows = &comparison.rows;
    let loads = rows.iter().any(|row| row.load != first.load);
    let parts = rows.iter().any(|row| row.part != first.part);
    let load = loads.then_some(&LOAD);
    let part = parts.then_some(&PART);
    let before = load.into_iter().chain(part);
    before.chain(&COLUMNS_OF_ALL).collect()
}

/// The table as text, with sentences.
pub fn terminal(comparison: &Comparison) -> String {
    let columns = columns(comparison);
    let mut grid = Grid::new();
    let line = LineStyle::none().fill('─').junction('─');
    grid.load_style(TableStyle::new().header_separator(line));
    // Two lines of words keep the table narrow.
    let heads = columns
        .iter()
        .map(|column| column.head.replace(" (", "\n("));
    grid.set_header(heads.chain(["".to_string()]));
    for row in &comparison.rows {
        let cells = columns.iter().map(|column| (column.cell)(row));
        let mark = if row.stands_out { "*" } else { "" };
        grid.add_row(cells.chain([mark.to_string()]));
    }
    for (column, known) in grid.column_iter_mut().zip(&columns) {
        column.set_padding((0, 0));
        if !known.is_text {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut text = format!("{}\n\n", grid.trim_fmt());
    let mut said = sentences(comparison, "An asterisk");
    said.extend(notes(comparison).iter().map(|note| format!("! {note}")));
    for sentence in said {
        text.push_str(&format!("{}\n", wrap(&sentence, COLUMNS)));
    }
    text
}

/// The table and the sentences as Markdown.
pub fn markdown(comparison: &Comparison) -> String {
    let columns = columns(comparison);
    let heads: Vec<&str> = columns.iter().map(|column| column.head).collect();
    let lines = columns
        .iter()
        .map(|column| if column.is_text { "---" } else { "---:" });
    let mut text = format!(
        "| {} |\n|{}|\n",
        heads.join(" | "),
        lines.collect::<Vec<_>>().join("|")
    );
    for row in &comparison.rows {
        let cell = |column: &&Column| {
            let plain = (column.cell)(row);
            let bold = row.stands_out && ["ratio", "95 % interval"].contains(&column.head);
            if bold {
                format!("**{plain}**")
            } else {
                plain
            }
        };
        let cells: Vec<String> = columns.iter().map(cell).collect();
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text.push_str(&format!("\n{}\n", sentences(comparison, "Bold").join(" ")));
    let notes = notes(comparison);
    if !notes.is_empty() {
        let items = notes.iter().map(|note| format!("- {note}\n"));
        text.push_str(&format!(
            "\nAgainst these rows speaks:\n\n{}",
            items.collect::<String>()
        ));
    }
    text
}

/// What the table is, and what it shows.
fn sentences(comparison: &Comparison, mark: &str) -> Vec<String> {
    let base = &comparison.base;
    let tests = comparison.rows.iter().filter(|row| row.corrected.is_some());
    let tests = tests.count();
    let mut all = vec![
        format!(
            "Ratios to {base}, paired by {} ({}): geometric mean, 95 % interval (Student's t \
             on the logarithms), the smallest and the largest seed.",
            if comparison.jitter.is_some() {
                "copy"
            } else {
                "seed"
            },
            listed(&comparison.seeds)
        ),
        format!(
            "p is corrected for the {tests} rows with an interval (Holm-Bonferroni). {mark} marks \
             rows that stand out: the corrected p is below 0.05, and no failure and no absence of \
             a scheduler speaks against it."
        ),
        stand_out(comparison),
    ];
    all.extend(comparison.jitter.as_ref().map(|by| {
        format!(
            "The copies are of one trace, with arrivals moved by up to {by}. The spread is that \
             of luck on this trace, and says nothing about other traces."
        )
    }));
    all.push(splits(comparison));
    let unsteady = |row: &Row| row.load.as_deref().and_then(is_steady) == Some(false);
    if comparison.rows.iter().any(unsteady) {
        all.push(
            "At a load of 1.0 or more there is no steady state: the backlog, and so each \
             figure, depends on the number of invocations."
                .to_string(),
        );
    }
    all
}

/// Where the splits are.
fn splits(comparison: &Comparison) -> String {
    let percent = |(low, high): (f64, f64)| match (
        format!("{:.1}", 100.0 * low),
        format!("{:.1}", 100.0 * high),
    ) {
        (low, high) if low == high => format!("{low} %"),
        (low, high) => format!("{low} to {high} %"),
    };
    let gap = match comparison.gap {
        Some(range) => format!("by the gap {}", percent(range)),
        None => "by the gap none, for there is no gap".to_string(),
    };
    match comparison.kept {
        Some(range) => format!("Short are 83 % of the invocations, {gap}; {} are not demoted.", percent(range)),
        None => format!("Short are 83 % of the invocations, {gap}. No row logs S, so there is no split by demotion."),
    }
}

fn stand_out(comparison: &Comparison) -> String {
    let rows = comparison.rows.len();
    let count = comparison.rows.iter().filter(|row| row.stands_out).count();
    match count {
        0 => format!("None of {rows} rows stands out."),
        1 => format!("1 of {rows} rows stands out."),
        _ => format!("{count} of {rows} rows stand out."),
    }
}

/// `1 to 5`, or all of them.
fn listed(seeds: &[u64]) -> String {
    match seeds {
        [first, .., last] if last - first + 1 == seeds.len() as u64 => format!("{first} to {last}"),
        _ => {
            let texts: Vec<String> = seeds.iter().map(u64::to_string).collect();
            texts.join(", ")
        }
    }
}

/// What speaks against runs: a line for each scheduler and load.
fn notes(comparison: &Comparison) -> Vec<String> {
    let line = |note: &crate::compare::Note| match &note.load {
        Some(load) => format!("{} at load {load}: {}", note.name, note.text),
        None => format!("{}: {}", note.name, note.text),
    };
    comparison.notes.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs;
    use crate::testing::{ejected_once, Folder, Made};

    #[test]
    fn the_terminal_has_all_rows_and_what_speaks_against_them() {
        let text = terminal(&ejected_once().0);
        let line = |start: &str| {
            let mut lines = text.lines();
            let found = lines.find(|line| line.starts_with(start));
            found.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        };
        let b = "b mean turnaround 4 0.500 0.487 to 0.513 0.490 (3) 0.510 (2) <0.001 *";
        assert_eq!(line("b ").unwrap(), b, "{text}");
        let c = line("c ").unwrap();
        assert!(
            c.starts_with("c mean turnaround 3 of 4 0.426 ") && !c.ends_with('*'),
            "{c}"
        );
        assert!(text.contains("! c: ejected in seed 2\n"), "{text}");
        assert!(text.contains("8 of 16 rows stand out."), "{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= 90),
            "{text}"
        );
    }

    #[test]
    fn probabilities_are_rounded_up() {
        let shown = [0.000_999, 0.001, 0.0122, 0.0501, 1.0].map(probability);
        assert_eq!(shown, ["<0.001", "0.001", "0.013", "0.051", "1.000"]);
    }

    #[test]
    fn only_what_stands_out_is_bold() {
        let text = markdown(&ejected_once().0);
        assert!(
            text.contains("| b | short, mean | 4 | **0.500** | **0.487 to 0.513** |"),
            "{text}"
        );
        assert!(
            text.contains("| c | short, mean | 3 of 4 | 0.426 |"),
            "{text}"
        );
        assert!(text.ends_with("\n- c: ejected in seed 2\n"), "{text}");
    }

    #[test]
    fn loads_parts_and_copies_are_named() {
        let folder = Folder::new(&["a", "b"], &[1, 2]);
        let mut series = folder.series();
        series.jitter = Some("50us".into());
        for (index, load) in ["0.5", "1.2"].into_iter().enumerate() {
            let seed = index as u64 + 1;
            folder.put(seed, "a", Made::times(20));
            let failed = index;
            folder.put(
                seed,
                "b",
                Made {
                    failed,
                    s_ms: Some(3.5),
                    ..Made::times(9)
                },
            );
            series.repetitions[index].load = Some(load.into());
        }
        let runs = runs::read(&series, folder.path(), Some(10)).unwrap();
        let text = markdown(&Comparison::new(&series, &runs));
        for part in [
            "| load | invocations | scheduler | figure |",
            "\n| 0.5 | all | b | mean turnaround | 1 | 0.450 | - |",
            "\n| 1.2 | middle 80 % | b | demoted | 1 | 0.450 | - |",
            "paired by copy (1 to 2)",
            "arrivals moved by up to 50us",
            "by the gap 50.0 %; 30.0 % are not demoted.",
            "no steady state",
            "- b at load 1.2: invocations failed in copy 2 (1)",
        ] {
            assert!(text.contains(part), "no '{part}' in {text}");
        }
    }
}
