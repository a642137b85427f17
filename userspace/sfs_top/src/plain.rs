//! One screen as text, and samples as JSON: for logs, programs and tests.

use crate::draw::{header_lines, plain_rows, Drawn};
use crate::state::{State, Table};

/// Rows of each table in a text.
const ROWS: usize = 20;

/// Returns the text: without `columns`, at least 80 wide, and as wide as the longest name needs.
pub fn text(state: &State, columns: Option<u16>) -> String {
    const USUAL: u16 = 80;
    let functions = Drawn::of(state, Table::Functions);
    let sandboxes = Drawn::of(state, Table::Sandboxes);
    let width = columns.unwrap_or_else(|| {
        let needed = functions.natural_width().max(sandboxes.natural_width());
        u16::try_from(needed).unwrap_or(u16::MAX).max(USUAL)
    });
    let mut lines = header_lines(state.sample.as_ref(), width).to_vec();
    lines.push(String::new());
    lines.extend(plain_rows(&state.history, width));
    let waste = state.sample.as_ref().and_then(|one| one.waste.as_ref());
    if let Some(longest) = waste.and_then(|waste| waste.longest.as_ref()) {
        lines.push(format!("wasted: {longest}"));
    }
    lines.push(String::new());
    lines.extend(functions.text(width, ROWS));
    if state.length(Table::Sandboxes) > 0 {
        lines.push(String::new());
        lines.extend(sandboxes.text(width, ROWS));
    }
    lines
        .iter()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect()
}
