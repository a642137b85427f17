//! The report as CSV, with all digits.

use crate::compare::{Comparison, Row};
use crate::estimate::Estimate;
use crate::runs::Run;
use anyhow::Result;
use serde_json::Value;

/// The rows with all their numbers, as CSV.
///
/// # Errors
/// None in practice.
pub fn ratios(comparison: &Comparison) -> Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record([
        "load",
        "invocations",
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
        let seed = |of: fn(&Estimate) -> u64| {
            estimate
                .as_ref()
                .map_or(String::new(), |it| of(it).to_string())
        };
        writer.write_record([
            row.load.clone().unwrap_or_default(),
            row.part.name(),
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

/// A table as JSON: a list with an object for each row. Numbers are numbers, and empty cells are
/// null.
///
/// # Errors
/// It is not CSV.
pub fn to_json(table: &[u8]) -> Result<String> {
    let mut reader = csv::Reader::from_reader(table);
    let names = reader.headers()?.clone();
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record?;
        let cells = names.iter().zip(&record);
        let row: serde_json::Map<String, Value> = cells
            .map(|(name, cell)| (name.to_owned(), value(cell)))
            .collect();
        rows.push(row);
    }
    Ok(serde_json::to_string_pretty(&rows)? + "\n")
}

fn value(cell: &str) -> Value {
    match serde_json::from_str(cell) {
        _ if cell.is_empty() => Value::Null,
        Ok(value @ (Value::Number(_) | Value::Bool(_))) => value,
        _ => cell.into(),
    }
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
pub fn runs(runs: &[Run]) -> Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record([
        "load",
        "seed",
        "scheduler",
        "status",
        "failed",
        "invocations",
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
        let mut rest: Vec<[String; 3]> = figures
            .map(|one| {
                let (part, figure) = (one.part.name(), one.figure.name());
                [part, figure.to_string(), format!("{:.6}", one.value)]
            })
            .collect();
        if rest.is_empty() {
            rest.push([const { String::new() }; 3]);
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
    use crate::testing::ejected_once;

    #[test]
    fn the_tables_as_csv_lose_nothing() {
        let (comparison, all) = ejected_once();
        let text = String::from_utf8(ratios(&comparison).unwrap()).unwrap();
        assert_eq!(text.lines().count(), 1 + 16);
        assert!(
            text.lines()
                .last()
                .unwrap()
                .ends_with(",false,c: ejected in seed 2"),
            "{text}"
        );
        let rows = to_json(&ratios(&comparison).unwrap()).unwrap();
        let rows: Vec<Value> = serde_json::from_str(&rows).unwrap();
        assert_eq!(rows.len(), 16);
        assert!(rows[0]["ratio"].is_number() && rows[0]["scheduler"].is_string());
        assert_eq!(rows[15]["stands_out"], false);
        assert_eq!(rows[15]["against"], "c: ejected in seed 2");
        let text = String::from_utf8(runs(&all).unwrap()).unwrap();
        assert_eq!(text.lines().count(), 1 + 11 * 8 + 1);
        assert!(text.contains("\n,2,c,ejected,0,,,\n"), "{text}");
        assert!(
            text.contains("\n,1,a,ok,0,all,mean slowdown,100.000000\n"),
            "{text}"
        );
    }
}
