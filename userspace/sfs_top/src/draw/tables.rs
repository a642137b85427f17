//! Tables of functions, sandboxes and counters.

use ratatui::layout::{Alignment, Constraint, Rect};
use ratatui::style::Modifier;
use ratatui::text::{Line, Text};
use ratatui::widgets::{Row, Table as Widget};
use ratatui::Frame;
use sfs_statistics::FunctionReport;

use super::Theme;
use crate::rows::Counter;
use crate::sample::Sandbox;
use crate::state::{Spot, State, Table};
use crate::table::{fitting, Cell, Column, Rows, Shown};
use crate::words::cut;

/// A table as it is drawn.
pub struct Drawn {
    columns: &'static [Column],
    rows: Vec<Vec<Cell>>,
    shown: Shown,
    /// What is said if it has no rows.
    empty: String,
}

impl Drawn {
    /// Returns the table that is shown of this state.
    pub fn of(state: &State, table: Table) -> Self {
        let sample = state.sample.as_ref();
        let scheduler = sample.and_then(|one| one.scheduler.as_ref());
        let unknown = match (sample, scheduler) {
            (None, _) | (_, Some(_)) => None,
            (Some(_), None) => Some("no scheduler answers"),
        };
        let words = |sentence: &str| unknown.unwrap_or(sentence).to_owned();
        match table {
            Table::Functions => {
                let rows = scheduler.map_or(&[][..], |one| &one.functions);
                let learns = scheduler.is_none_or(|one| one.metrics.policy == "learned");
                Self {
                    columns: FunctionReport::COLUMNS,
                    rows: state.functions.ordered(rows),
                    shown: state.functions,
                    empty: words(if learns {
                        "no invocation of a function has ended yet"
                    } else {
                        "functions are learned with --policy learned only"
                    }),
                }
            }
            Table::Sandboxes => {
                let sandboxes = sample.and_then(|one| one.sandboxes.as_ref());
                let rows = sandboxes.map_or(&[][..], |all| &all.list);
                Self {
                    columns: Sandbox::COLUMNS,
                    rows: state.sandboxes.ordered(rows),
                    shown: state.sandboxes,
                    empty: words(match sandboxes {
                        Some(_) => "no cgroup matches --cgroup",
                        None => "without --cgroup there are no sandboxes",
                    }),
                }
            }
            Table::Counters => Self {
                columns: Counter::COLUMNS,
                rows: state.counters.ordered(&state.counter_rows()),
                shown: state.counters,
                empty: words("nothing has been counted yet"),
            },
        }
    }

    /// Returns the table as text of this width: the title, and at most `most` rows.
    pub fn text(&self, width: u16, most: usize) -> Vec<String> {
        let columns = fitting(self.columns, width);
        let mut lines =
            vec![joined(columns.iter().map(|(at, width)| {
                self.padded(*at, self.columns[*at].title, *width)
            }))];
        for row in self.rows.iter().take(most) {
            lines.push(joined(columns.iter().map(|(at, width)| {
                self.padded(*at, &cell(row, *at, *width), *width)
            })));
        }
        if self.rows.is_empty() {
            lines.push(self.empty.clone());
        } else if self.rows.len() > most {
            lines.push(format!("and {} more", self.rows.len() - most));
        }
        lines
    }

    /// Returns the width at which no text of the variable column is cut.
    pub fn natural_width(&self) -> usize {
        let Some(variable) = self.columns.iter().position(|column| column.width == 0) else {
            return 0;
        };
        let length = |row: &Vec<Cell>| row.get(variable).map_or(0, |cell| cell.0.chars().count());
        let longest = self.rows.iter().map(length).max().unwrap_or(0);
        let others = self.columns.iter().map(|column| usize::from(column.width));
        longest + others.sum::<usize>() + self.columns.len() - 1
    }

    fn is_number(&self, column: usize) -> bool {
        self.columns[column].large_first || column > 0 && self.columns[column].width > 0
    }

    fn padded(&self, column: usize, text: &str, width: u16) -> String {
        let width = usize::from(width);
        if self.is_number(column) {
            format!("{text:>width$}")
        } else {
            format!("{text:width$}")
        }
    }
}

fn joined(cells: impl Iterator<Item = String>) -> String {
    cells.collect::<Vec<_>>().join(" ").trim_end().to_owned()
}

fn cell(row: &[Cell], column: usize, width: u16) -> String {
    row.get(column)
        .map_or_else(String::new, |cell| cut(&cell.0, usize::from(width)))
}

/// Draws a table, and notes where it is.
pub fn draw(frame: &mut Frame<'_>, state: &mut State, theme: Theme, area: Rect, table: Table) {
    if area.is_empty() {
        return;
    }
    let drawn = Drawn::of(state, table);
    let columns = fitting(drawn.columns, area.width);
    let mut at = area.x;
    for (column, width) in &columns {
        let title = Rect::new(at, area.y, *width, 1).intersection(area);
        state.spots.push((title, Spot::Title(table, *column)));
        at = at.saturating_add(width + 1);
    }
    state.spots.push((area, Spot::Table(table)));
    let room = usize::from(area.height - 1);
    // No empty lines below the last row while there are rows above the first one.
    let offset = drawn
        .shown
        .offset
        .min(drawn.rows.len().saturating_sub(room));
    state.shown(table).offset = offset;

    let aligned = |column: usize, text: String| {
        let side = if drawn.is_number(column) {
            Alignment::Right
        } else {
            Alignment::Left
        };
        Text::from(Line::raw(text)).alignment(side)
    };
    let titles = columns.iter().map(|(column, width)| {
        let text = cut(drawn.columns[*column].title, usize::from(*width));
        let style = if *column == drawn.shown.by {
            theme.chosen
        } else {
            theme.title
        };
        aligned(*column, text).style(style.add_modifier(Modifier::BOLD))
    });
    let rows = drawn.rows.iter().skip(offset).take(room).map(|row| {
        Row::new(
            columns
                .iter()
                .map(|(column, width)| aligned(*column, cell(row, *column, *width))),
        )
    });
    let widths = columns.iter().map(|(_, width)| Constraint::Length(*width));
    let widget = Widget::new(rows, widths)
        .header(Row::new(titles))
        .column_spacing(1);
    frame.render_widget(widget, area);
    if drawn.rows.is_empty() && room > 0 {
        let below = Rect::new(area.x, area.y + 1, area.width, 1);
        frame.render_widget(Line::raw(drawn.empty), below);
    }
}
