//! The main table as plain text.

use super::{main, odd, Cell};
use crate::{label, Comparison};
use comfy_table::{CellAlignment, LineStyle, Table as Grid, TableStyle};

/// Number of the main table's columns that fit on the terminal.
const ON_TERMINAL: usize = 6;

/// The main table as text, for 80 columns.
pub fn terminal(comparison: &Comparison) -> String {
    let table = main(comparison);
    let failed = comparison.rows.iter().any(|row| row.failed > 0);
    let mut grid = Grid::new();
    let line = LineStyle::none().fill('─').junction('─');
    grid.load_style(TableStyle::new().header_separator(line));
    let heads = [
        "",
        "all, ms",
        "short, ms",
        "long, ms",
        "slowdown\np99",
        "RTE\n>= 0.95",
        "invol.\nswitches",
        "failed",
    ];
    let columns = if failed { heads.len() } else { heads.len() - 1 };
    grid.set_header(&heads[..columns]);
    for (index, row) in table.rows.iter().enumerate() {
        let mut cells = vec![short_name(comparison, index)];
        cells.extend(row[1..=ON_TERMINAL].iter().map(in_brackets));
        cells.extend(row.last().filter(|_| failed).map(in_brackets));
        grid.add_row(cells);
    }
    for (index, column) in grid.column_iter_mut().enumerate() {
        column.set_padding((0, 0));
        if index > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let beside = comparison.base().map_or(String::new(), |base| {
        format!(" (and its ratio to {}'s)", label(base))
    });
    format!(
        "Mean turnaround{beside}, and of all invocations:\n{}{}",
        grid.trim_fmt(),
        over_alone(comparison)
    )
}

/// What fixed work took, below the table; nothing if there is none.
fn over_alone(comparison: &Comparison) -> String {
    let mut text = String::new();
    for (index, row) in comparison.rows.iter().enumerate() {
        if let Some(work) = &row.fixed_work {
            let name = short_name(comparison, index);
            let ratio = work.all.cpu_over_alone;
            text += &format!("\n  {ratio:.3}  {name}");
        }
    }
    match text.is_empty() {
        true => text,
        false => format!("\n\nCPU time of fixed work / CPU time that it takes alone:{text}"),
    }
}

/// A row's name for narrow places; an exclamation mark stands for marks that
/// are not shown.
fn short_name(comparison: &Comparison, index: usize) -> String {
    let row = &comparison.rows[index];
    let simulated = if row.is_simulated() { " (sim)" } else { "" };
    let odd = !odd(comparison, index).is_empty() || row.failed > 0;
    let name = faas_data::input::shorten(&row.scheduler.name, 20);
    format!("{name}{simulated}{}", if odd { " !" } else { "" })
}

fn in_brackets(cell: &Cell) -> String {
    let small = cell.small.trim_end_matches('x');
    if small.is_empty() {
        return cell.text.clone();
    }
    format!("{} ({small})", cell.text)
}
