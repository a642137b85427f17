//! The report for the terminal, as Markdown and as CSV.

use crate::compare::{Comparison, Row};
use crate::estimate::Observation;
use crate::list::is_steady;
use crate::runs::Run;
use anyhow::Result;
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
    match value {
        small if small < 0.995 => format!("{value:.3}"),
        _ => format!("{value:.2}"),
    }
}

fn observation(one: Observation) -> String {
    format!("{} ({})", ratio(one.ratio), one.seed)
}

fn probability(p: f64) -> String {
    match p < 0.001 {
        true => "<0.001".to_string(),
        false => format!("{p:.3}"),
    }
}

/// The columns that say something: that of the load only if there is more than one.
fn columns(comparison: &Comparison) -> Vec<&'static Column> {
    let first = comparison.rows.first().map(|row| &row.load);
    let several = comparison.rows.iter().any(|row| Some(&row.load) != first);
    let load = several.then_some(&LOAD);
    load.into_iter().chain(&COLUMNS_OF_ALL).collect()
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
            "Ratios to {base}, paired by seed ({}): geometric mean, 95 % interval (Student's t \
             on the logarithms), the smallest and the largest seed.",
            listed(&comparison.seeds)
        ),
        format!(
            "p is corrected for the {tests} rows with an interval (Holm-Bonferroni). {mark} marks \
             rows that stand out: the corrected p is below 0.05, and nothing speaks against a run."
        ),
        stand_out(comparison),
    ];
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

/// The rows with all their numbers, as CSV.
///
/// # Errors
/// None in practice.
pub fn ratios_csv(comparison: &Comparison) -> Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record([
        "load",
        "scheduler",
        "baseline",
        "figure",
        "planned_seeds",
        "seeds",
        "ratio",
        "low",
        "high",
        "smallest",
        "smallest_seed",
        "largest",
        "largest_seed",
        "p",
        "p_corrected",
        "stands_out",
        "against",
    ])?;
    for row in &comparison.rows {
        let estimate = row.estimate;
        let test = estimate.and_then(|estimate| estimate.test);
        let number =
            |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.6}"));
        let small =
            |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.3e}"));
        let seed = |of: fn(&crate::estimate::Estimate) -> u64| {
            estimate
                .as_ref()
                .map_or(String::new(), |it| of(it).to_string())
        };
        writer.write_record([
            row.load.clone().unwrap_or_default(),
            row.name.clone(),
            comparison.base.clone(),
            row.figure.name().to_string(),
            row.planned.to_string(),
            estimate.map_or(0, |it| it.seeds).to_string(),
            number(estimate.map(|it| it.ratio)),
            number(test.map(|it| it.low)),
            number(test.map(|it| it.high)),
            number(estimate.map(|it| it.smallest.ratio)),
            seed(|it| it.smallest.seed),
            number(estimate.map(|it| it.largest.ratio)),
            seed(|it| it.largest.seed),
            small(test.map(|it| it.p)),
            small(row.corrected),
            row.stands_out.to_string(),
            against(comparison, row),
        ])?;
    }
    Ok(writer.into_inner()?)
}

/// What speaks against a row: troubles of its scheduler and of the first one.
fn against(comparison: &Comparison, row: &Row) -> String {
    let all = comparison.notes.iter().filter(|note| {
        note.load == row.load && (note.name == row.name || note.name == comparison.base)
    });
    let texts: Vec<String> = all
        .map(|note| format!("{}: {}", note.name, note.text))
        .collect();
    texts.join("; ")
}

/// All figures of all runs, as CSV, so that everything can be computed anew.
///
/// # Errors
/// None in practice.
pub fn runs_csv(runs: &[Run]) -> Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record([
        "load",
        "seed",
        "scheduler",
        "status",
        "failed",
        "figure",
        "value",
    ])?;
    for run in runs {
        let start = [
            run.load.clone().unwrap_or_default(),
            run.seed.to_string(),
            run.row.clone(),
            run.status.clone(),
            run.failed.to_string(),
        ];
        let figures = run.figures.iter();
        let mut rest: Vec<[String; 2]> = figures
            .map(|(figure, value)| [figure.name().to_string(), format!("{value:.6}")])
            .collect();
        if rest.is_empty() {
            rest.push([String::new(), String::new()]);
        }
        for end in rest {
            writer.write_record(start.iter().chain(&end))?;
        }
    }
    Ok(writer.into_inner()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs;
    use crate::testing::{Folder, Made};
    use faas_data::summary::Status;

    /// Four seeds in which `b` takes about half of the time of `a`, and `c` is ejected once.
    fn made() -> (Comparison, Vec<Run>) {
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
        let runs = runs::read(&series, folder.path()).unwrap();
        (Comparison::new(&series, &runs), runs)
    }

    #[test]
    fn the_terminal_has_all_rows_and_what_speaks_against_them() {
        let text = terminal(&made().0);
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
        assert!(text.contains("6 of 12 rows stand out."), "{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= 90),
            "{text}"
        );
    }

    #[test]
    fn only_what_stands_out_is_bold() {
        let text = markdown(&made().0);
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
    fn the_tables_as_csv_lose_nothing() {
        let (comparison, runs) = made();
        let text = String::from_utf8(ratios_csv(&comparison).unwrap()).unwrap();
        assert_eq!(text.lines().count(), 1 + 12);
        assert!(
            text.lines()
                .last()
                .unwrap()
                .ends_with(",false,c: ejected in seed 2"),
            "{text}"
        );
        let text = String::from_utf8(runs_csv(&runs).unwrap()).unwrap();
        assert_eq!(text.lines().count(), 1 + 11 * 6 + 1);
        assert!(text.contains("\n,2,c,ejected,0,,\n"), "{text}");
        assert!(
            text.contains("\n,1,a,ok,0,mean slowdown,100.000000\n"),
            "{text}"
        );
    }
}
