//! Figures over time, two in each row.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{RenderDirection, Sparkline};
use ratatui::Frame;

use super::Theme;
use crate::history::{Figure, History, FIGURES};

/// Number of rows.
pub const ROWS: u16 = FIGURES.len() as u16 / 2;

/// Width of a name and its value.
const NAME: usize = 8;
const VALUE: usize = 9;
const WORDS: u16 = (NAME + VALUE + 2) as u16;

/// Draws them, each in `lines` lines.
pub fn draw(frame: &mut Frame<'_>, history: &History, theme: Theme, area: Rect, lines: u16) {
    let gap = 2;
    let left = area.width.saturating_sub(gap) / 2;
    let right = area.width.saturating_sub(left + gap);
    for (row, pair) in (0..).zip(FIGURES.chunks(2)) {
        let y = area.y.saturating_add(row * lines);
        let places = [
            Rect::new(area.x, y, left, lines),
            Rect::new(area.x.saturating_add(left + gap), y, right, lines),
        ];
        for (figure, place) in pair.iter().zip(places) {
            let place = place.intersection(area);
            if !place.is_empty() {
                draw_one(frame, history, theme, place, *figure);
            }
        }
    }
}

fn draw_one(frame: &mut Frame<'_>, history: &History, theme: Theme, area: Rect, figure: Figure) {
    let value = history.latest(figure);
    let is_alarming = figure == Figure::Mode && value.is_some_and(|value| value > 0.0);
    let style = if is_alarming {
        theme.alarm
    } else {
        theme.plain
    };
    let words = Line::from(vec![
        Span::raw(format!("{:NAME$} ", figure.name())),
        Span::styled(format!("{:>VALUE$} ", figure.text(value)), style),
    ]);
    // The words stand at the foot of the graph.
    let foot = Rect::new(area.x, area.bottom() - 1, area.width, 1);
    frame.render_widget(words, foot);
    let place = Rect::new(
        area.x.saturating_add(WORDS),
        area.y,
        area.width.saturating_sub(WORDS),
        area.height,
    );
    if place.width == 0 {
        return;
    }
    let data: Vec<u64> = history
        .of(figure)
        .take(usize::from(place.width))
        .map(scaled)
        .collect();
    let largest = data.iter().copied().max().unwrap_or(0);
    let full = figure.full().map_or(largest, scaled).max(1);
    // Something is never drawn like nothing.
    let seen = |value: u64| {
        if value > 0 {
            value.max(full.div_ceil(8))
        } else {
            0
        }
    };
    let data: Vec<u64> = data.into_iter().map(seen).collect();
    let graph = Sparkline::default()
        .data(data)
        .max(full)
        .direction(RenderDirection::RightToLeft)
        .bar_set(theme.bars())
        .style(theme.graph);
    frame.render_widget(graph, place);
}

/// Returns a value as a whole number with a resolution of a thousandth.
fn scaled(value: f64) -> u64 {
    (value.max(0.0) * 1000.0) as u64
}

/// Returns the values without graphs, for a text of one moment, in lines of at most `width` if
/// that is possible.
pub fn plain_rows(history: &History, width: u16) -> Vec<String> {
    let cell = |figure: &Figure| {
        let value = figure.text(history.latest(*figure));
        format!("{:NAME$} {value:>VALUE$}", figure.name())
    };
    let cells = (usize::from(width) + 2) / (NAME + 1 + VALUE + 2);
    let rows = FIGURES.chunks(cells.clamp(1, 4));
    rows.map(|row| row.iter().map(cell).collect::<Vec<_>>().join("  "))
        .collect()
}
