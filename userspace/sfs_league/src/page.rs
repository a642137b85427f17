//! The tables, and the page that has them.

use crate::columns::{Column, Kind, BASE, OURS};
use crate::figures::Figure;
use crate::results::Results;
use crate::standing::{Miss, Standing};
use crate::workloads::{self, Workload};
use anyhow::Result;
use sfs_jobs::tree::Tree;
use std::collections::BTreeSet;

const PAGE: &str = "docs/league.md";

/// The tables follow this line of the page.
const MARK: &str = "<!-- What follows is written by sfs_league --publish. -->";

/// Replaces the tables in the page.
///
/// # Errors
/// If the page has no place for them, or cannot be read or written.
pub fn publish(tree: &Tree, tables: &str) -> Result<()> {
    sfs_jobs::page::publish(tree, PAGE, MARK, tables)
}

/// The tables of all results: first where scx_sfs without an option is not the best.
pub fn text(results: &Results) -> String {
    let all = workloads::ALL.iter();
    let standings: Vec<(&Workload, Standing)> = all
        .map(|workload| (workload, Standing::of(results, workload.name)))
        .filter(|(_, standing)| !standing.is_empty())
        .collect();
    let mut text = summary(&standings);
    if standings.is_empty() {
        return text;
    }
    text += &missed(&standings);
    for figure in Figure::ALL {
        text += &table(&standings, figure);
    }
    text += &rows(&standings, results);
    text + &broken(&standings)
}

/// Rows that are won, and the others.
fn summary(standings: &[(&Workload, Standing)]) -> String {
    let complete = standings.iter().filter(|(_, one)| one.is_complete());
    let won = complete.clone().filter(|(_, one)| one.misses().is_empty());
    let won: Vec<&str> = won.map(|(workload, _)| workload.name).collect();
    let mut text = format!(
        "{} of {} workloads have results. scx_sfs without an option meets all goals on {} of them",
        complete.count(),
        workloads::ALL.len(),
        won.len()
    );
    if !won.is_empty() {
        text += &format!(": {}", won.join(", "));
    }
    text + ".\n\n"
}

/// The goals that are missed, the farthest first.
fn missed(standings: &[(&Workload, Standing)]) -> String {
    let mut all: Vec<(&str, Miss)> = standings
        .iter()
        .flat_map(|(workload, standing)| {
            let misses = standing.misses().into_iter();
            misses.map(|miss| (workload.name, miss))
        })
        .collect();
    if all.is_empty() {
        return String::new();
    }
    all.sort_by(|(_, one), (_, other)| other.excess().total_cmp(&one.excess()));
    let mut text = "### Where it is not the best\n\n\
        | workload | figure | scx_sfs relative to | | goal | beyond it for certain |\n\
        |---|---|---|---|---|---|\n"
        .to_string();
    for (workload, miss) in all {
        text += &format!(
            "| {workload} | {} | {} | {} | {:.2} | {} |\n",
            miss.goal.figure.name(),
            miss.rival,
            miss.ratio.shown(digits),
            miss.goal.most,
            if miss.is_certain() { "yes" } else { "no" }
        );
    }
    text + "\n"
}

/// Two digits after the point, or three significant ones of a small number.
fn digits(number: f64) -> String {
    match number {
        n if n >= 100.0 => format!("{n:.0}"),
        n if n >= 10.0 => format!("{n:.1}"),
        n if n >= 0.1 => format!("{n:.2}"),
        n => format!("{n:.3}"),
    }
}

/// The columns of any of these, in their order.
fn columns_of(standings: &[(&Workload, Standing)]) -> Vec<&'static Column> {
    let mut columns = crate::columns::ALL.iter().collect::<Vec<_>>();
    columns.retain(|column| {
        let mut all = standings.iter();
        all.any(|(_, one)| one.columns().any(|other| other.name == column.name))
    });
    columns
}

/// One figure under all schedulers.
fn table(standings: &[(&Workload, Standing)], figure: Figure) -> String {
    let columns = columns_of(standings);
    let mut text = format!("### {}\n\n| workload |", capital(figure.name()));
    text += &columns
        .iter()
        .map(|column| format!(" {} |", column.name))
        .collect::<String>();
    text += &format!("\n|---|{}\n", "---|".repeat(columns.len()));
    for (workload, standing) in standings {
        text += &format!("| {} |", workload.name);
        for column in &columns {
            text += &format!(" {} |", cell(standing, column, figure));
        }
        text += "\n";
    }
    text + "\n"
}

/// Whether a column is better than all that it competes with, each with an interval that leaves no
/// doubt.
fn is_best(standing: &Standing, column: &Column, figure: Figure) -> bool {
    let competes = |kind| !matches!(kind, Kind::Variant | Kind::Bound);
    let others = standing.columns().filter(|other| competes(other.kind));
    let mut others = others.filter(|other| other.name != column.name).peekable();
    let is_ahead = |other: &Column| {
        let ratio = standing.ratio(column.name, other.name, figure);
        let test = ratio.and_then(|ratio| ratio.test);
        test.is_some_and(|test| test.high < 1.0)
    };
    competes(column.kind) && others.peek().is_some() && others.all(is_ahead)
}

/// EEVDF's value; of others the value relative to it, with the interval. Bold if it is the best.
fn cell(standing: &Standing, column: &Column, figure: Figure) -> String {
    let Some(value) = standing.value(column.name, figure) else {
        return String::new();
    };
    let absolute = || format!("{}{}", digits(value), figure.unit());
    let text = match column.name {
        BASE => absolute(),
        name => standing
            .ratio(name, BASE, figure)
            .map_or_else(absolute, |ratio| ratio.shown(digits)),
    };
    match is_best(standing, column, figure) {
        true => format!("**{text}**"),
        false => text,
    }
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(characters).collect()
}

/// What each row is, and which commits its results are of.
fn rows(standings: &[(&Workload, Standing)], results: &Results) -> String {
    let mut text = "### The rows\n\n\
        | workload | content | CPUs | sandboxes | seeds | machines | commits of scx_sfs | kernel |\n\
        |---|---|---|---|---|---|---|---|\n"
        .to_string();
    for (workload, standing) in standings {
        let ours = results.lines().iter();
        let ours = ours.filter(|line| line.workload == workload.name && line.scheduler == OURS);
        let words = |of: fn(&crate::results::Line) -> &str| {
            let words: BTreeSet<&str> = ours.clone().map(of).collect();
            words.into_iter().collect::<Vec<_>>().join(" ")
        };
        let machines: BTreeSet<_> = ours.clone().map(|line| line.machine).collect();
        text += &format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} |\n",
            workload.name,
            workload.about,
            workload.cpus,
            workload.sandbox.name(),
            standing.seeds(OURS),
            machines.len(),
            words(|line| &line.commit),
            words(|line| &line.kernel)
        );
    }
    text
}

/// Runs that are no clean measurement.
fn broken(standings: &[(&Workload, Standing)]) -> String {
    let lines: String = standings
        .iter()
        .flat_map(|(_, standing)| standing.broken())
        .map(|line| {
            format!(
                "- {} on {}, seed {}: {}\n",
                line.scheduler, line.workload, line.seed, line.status
            )
        })
        .collect();
    match lines.is_empty() {
        true => String::new(),
        false => format!("\nNo clean measurements, which count for nobody:\n\n{lines}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_two_or_three_digits() {
        let all = [0.0123, 0.123, 1.234, 12.34, 123.4].map(digits);
        assert_eq!(all, ["0.012", "0.12", "1.23", "12.3", "123"]);
    }

    #[test]
    fn without_results_there_are_no_rows() {
        let folder = tempfile::tempdir().unwrap();
        let results = Results::read(&folder.path().join("league.csv")).unwrap();
        let text = text(&results);
        assert!(
            text.starts_with("0 of 34 workloads have results."),
            "{text}"
        );
        assert!(!text.contains("Where it is not the best"));
    }
}
