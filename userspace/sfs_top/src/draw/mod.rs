//! Draws the state. Nothing here reads or decides anything; it only notes where things are, for
//! the mouse.
//!
//! | module | purpose |
//! |---|---|
//! | `theme` | colours and characters |
//! | `header` | the first two lines, as words |
//! | `graphs` | figures over time |
//! | `tables` | functions, sandboxes, counters |

mod graphs;
mod header;
mod tables;
#[cfg(test)]
mod tests;
mod theme;

use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};
use ratatui::Frame;

pub use graphs::{plain_rows, ROWS as GRAPH_ROWS};
pub use header::lines as header_lines;
pub use tables::Drawn;
pub use theme::Theme;

use crate::keys::KEYS;
use crate::state::{Spot, State, Table, View};

/// Draws everything.
pub fn draw(frame: &mut Frame<'_>, state: &mut State, theme: Theme) {
    state.spots.clear();
    let [head, tabs, body, foot] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let lines = header::lines(state.sample.as_ref(), head.width);
    let is_alarmed = header::is_alarming(state.sample.as_ref());
    let [first, second] = lines.map(Line::raw);
    let first = first.style(if is_alarmed { theme.alarm } else { theme.title });
    frame.render_widget(Paragraph::new(vec![first, second]), head);
    draw_tabs(frame, state, theme, tabs);
    draw_body(frame, state, theme, body);
    draw_foot(frame, state, theme, foot);
    if state.helps {
        draw_help(frame, theme);
    }
}

fn draw_tabs(frame: &mut Frame<'_>, state: &mut State, theme: Theme, area: Rect) {
    let mut spans = Vec::new();
    let mut at = area.x;
    for (number, view) in (1..).zip(View::ALL) {
        let text = format!(" {number} {} ", view.name());
        let width = u16::try_from(text.len()).unwrap_or(u16::MAX);
        let spot = Rect::new(at, area.y, width, 1).intersection(area);
        state.spots.push((spot, Spot::Tab(view)));
        at = at.saturating_add(width);
        let style = if view == state.view {
            theme.chosen
        } else {
            theme.plain
        };
        spans.push(Span::styled(text, style));
    }
    let seconds = state.interval.as_secs_f64();
    let state_word = match state.is_paused {
        true => "PAUSED".to_owned(),
        false => format!("every {seconds} s"),
    };
    let style = if state.is_paused {
        theme.alarm
    } else {
        theme.plain
    };
    frame.render_widget(Line::from(spans), area);
    let width = u16::try_from(state_word.len()).unwrap_or(0);
    let used = at - area.x;
    if used + width <= area.width {
        let place = Rect::new(area.right() - width, area.y, width, 1);
        frame.render_widget(Span::styled(state_word, style), place);
    }
}

fn draw_body(frame: &mut Frame<'_>, state: &mut State, theme: Theme, area: Rect) {
    match state.view {
        View::Overview => draw_overview(frame, state, theme, area),
        View::Functions => tables::draw(frame, state, theme, area, Table::Functions),
        View::Sandboxes => tables::draw(frame, state, theme, area, Table::Sandboxes),
        View::Counters => tables::draw(frame, state, theme, area, Table::Counters),
    }
}

fn draw_overview(frame: &mut Frame<'_>, state: &mut State, theme: Theme, area: Rect) {
    // On a tall screen each graph has two lines.
    let lines = if area.height >= 34 { 2 } else { 1 };
    let has_sandboxes = state.length(Table::Sandboxes) > 0;
    let graphs = Constraint::Length(GRAPH_ROWS * lines);
    let [above, functions, sandboxes] = if has_sandboxes {
        let half = Constraint::Fill(1);
        Layout::vertical([graphs, half, half]).areas(area)
    } else {
        let rest = Constraint::Fill(1);
        Layout::vertical([graphs, rest, Constraint::Length(0)]).areas(area)
    };
    graphs::draw(frame, &state.history, theme, above, lines);
    tables::draw(frame, state, theme, functions, Table::Functions);
    if has_sandboxes {
        tables::draw(frame, state, theme, sandboxes, Table::Sandboxes);
    }
}

fn draw_foot(frame: &mut Frame<'_>, state: &State, theme: Theme, area: Rect) {
    let waste = state.sample.as_ref().and_then(|one| one.waste.as_ref());
    let longest = waste.and_then(|waste| waste.longest.as_ref());
    let line = match (&state.note, longest) {
        (Some(note), _) => Line::styled(note.clone(), theme.alarm),
        (None, Some(longest)) if state.watches_waste => Line::raw(format!("wasted: {longest}")),
        _ => {
            Line::raw("q quit  ? help  Tab view  s order  r reverse  p pause  +- interval  w waste")
        }
    };
    frame.render_widget(line, area);
}

fn draw_help(frame: &mut Frame<'_>, theme: Theme) {
    let all = frame.area();
    let height = u16::try_from(KEYS.len()).unwrap_or(0) + 2;
    let [area] = Layout::horizontal([Constraint::Length(72)])
        .flex(ratatui::layout::Flex::Center)
        .areas(all);
    let [area] = Layout::vertical([Constraint::Length(height)])
        .flex(ratatui::layout::Flex::Center)
        .areas(area);
    let lines = KEYS.map(|(keys, meaning)| {
        Line::from(vec![
            Span::styled(format!(" {keys:13} "), theme.title),
            Span::raw(meaning),
        ])
    });
    let block = Block::bordered().border_set(theme.border()).title(" Keys ");
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines.to_vec()).block(block), area);
}
