//! What keys and the mouse do.

use ratatui::crossterm::event::{
    Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};

use crate::rows::Counter;
use crate::sample::Sandbox;
use crate::sampler::Order;
use crate::state::{Spot, State, Table, View};
use crate::table::Rows;
use sfs_statistics::FunctionReport;

/// Rows that a turn of the wheel scrolls.
const WHEEL: isize = 3;
/// Rows of a page.
const PAGE: isize = 10;

/// What the program must do itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Nothing; the screen may have changed.
    Nothing,
    /// End.
    Quit,
    /// Stop, as any program at Ctrl-Z.
    Suspend,
    /// Draw everything again.
    Redraw,
    /// Give the sampler an order.
    Order(Order),
    /// Use the mouse, or leave it to the terminal.
    Mouse(bool),
}

/// The keys, for the help: their names and what they do.
pub const KEYS: [(&str, &str); 13] = [
    ("q  Ctrl-C", "quit"),
    ("?  h  F1", "this help; any key closes it"),
    ("Tab  1-4", "next view, or that view (Shift-Tab: previous)"),
    ("s  S", "order the table by the next, or previous, column"),
    ("r", "reverse the order"),
    ("Up Down j k", "scroll by a row; PgUp PgDn Home End"),
    ("p  Space", "pause, go on"),
    ("+  -", "longer, shorter interval"),
    ("w", "watch for wasted CPU time; costs time at each switch"),
    ("m", "leave the mouse to the terminal, to select text"),
    ("Ctrl-L", "draw everything again"),
    ("Ctrl-Z", "suspend"),
    (
        "mouse",
        "click on a tab or a column's title, again to reverse",
    ),
];

/// Takes one event of the terminal.
pub fn take(state: &mut State, event: &Event) -> Action {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => {
            state.note = None;
            on_key(state, *key)
        }
        Event::Mouse(mouse) => on_mouse(state, *mouse),
        _ => Action::Nothing,
    }
}

fn on_key(state: &mut State, key: KeyEvent) -> Action {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c' | 'd') => Action::Quit,
            KeyCode::Char('z') => Action::Suspend,
            KeyCode::Char('l') => Action::Redraw,
            _ => Action::Nothing,
        };
    }
    if state.helps {
        state.helps = false;
        return match key.code {
            KeyCode::Char('q') => Action::Quit,
            _ => Action::Nothing,
        };
    }
    match key.code {
        KeyCode::Char('q') => return Action::Quit,
        KeyCode::Char('?' | 'h') | KeyCode::F(1) => state.helps = true,
        KeyCode::Tab | KeyCode::Right => state.view = state.view.neighbour(false),
        KeyCode::BackTab | KeyCode::Left => state.view = state.view.neighbour(true),
        KeyCode::Char(digit @ '1'..='4') => state.view = View::ALL[digit as usize - '1' as usize],
        KeyCode::Char('p' | ' ') => {
            state.is_paused = !state.is_paused;
            return Action::Order(Order::Pause(state.is_paused));
        }
        KeyCode::Char('+' | '=') => return set_interval(state, true),
        KeyCode::Char('-') => return set_interval(state, false),
        KeyCode::Char('w') => {
            state.watches_waste = !state.watches_waste;
            return Action::Order(Order::Waste(state.watches_waste));
        }
        KeyCode::Char('m') => {
            state.uses_mouse = !state.uses_mouse;
            return Action::Mouse(state.uses_mouse);
        }
        code => on_table_key(state, code),
    }
    Action::Nothing
}

fn on_table_key(state: &mut State, code: KeyCode) {
    let table = state.view.table();
    let last = isize::try_from(state.length(table)).unwrap_or(isize::MAX);
    match code {
        KeyCode::Char('s') => order_by_next(state, table, 1),
        KeyCode::Char('S') => order_by_next(state, table, columns(table) - 1),
        KeyCode::Char('r') => {
            let shown = state.shown(table);
            shown.reversed = !shown.reversed;
        }
        KeyCode::Up | KeyCode::Char('k') => scroll(state, table, -1),
        KeyCode::Down | KeyCode::Char('j') => scroll(state, table, 1),
        KeyCode::PageUp => scroll(state, table, -PAGE),
        KeyCode::PageDown => scroll(state, table, PAGE),
        KeyCode::Home | KeyCode::Char('g') => scroll(state, table, -last),
        KeyCode::End | KeyCode::Char('G') => scroll(state, table, last),
        _ => {}
    }
}

fn on_mouse(state: &mut State, mouse: MouseEvent) -> Action {
    let spot = state.spot(mouse.column, mouse.row);
    match (mouse.kind, spot) {
        (MouseEventKind::Down(MouseButton::Left), _) if state.helps => state.helps = false,
        (MouseEventKind::Down(MouseButton::Left), Some(Spot::Tab(view))) => state.view = view,
        (MouseEventKind::Down(MouseButton::Left), Some(Spot::Title(table, column))) => {
            state.shown(table).choose(column);
        }
        (MouseEventKind::ScrollUp, Some(Spot::Table(table) | Spot::Title(table, _))) => {
            scroll(state, table, -WHEEL);
        }
        (MouseEventKind::ScrollDown, Some(Spot::Table(table) | Spot::Title(table, _))) => {
            scroll(state, table, WHEEL);
        }
        _ => {}
    }
    Action::Nothing
}

fn set_interval(state: &mut State, longer: bool) -> Action {
    state.interval = state.next_interval(longer);
    Action::Order(Order::Interval(state.interval))
}

fn scroll(state: &mut State, table: Table, rows: isize) {
    let length = state.length(table);
    state.shown(table).scroll(rows, length);
}

fn columns(table: Table) -> usize {
    match table {
        Table::Functions => FunctionReport::COLUMNS.len(),
        Table::Sandboxes => Sandbox::COLUMNS.len(),
        // The last one, the meaning, has no title.
        Table::Counters => Counter::COLUMNS.len() - 1,
    }
}

fn order_by_next(state: &mut State, table: Table, step: usize) {
    let shown = state.shown(table);
    *shown = crate::table::Shown::by((shown.by + step) % columns(table));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Sample, Scheduler};
    use ratatui::layout::Rect;
    use std::time::Duration;

    fn state() -> State {
        let mut state = State::new(Duration::from_secs(1));
        let function = |at: u32| FunctionReport {
            key: 0,
            function: format!("f{at}"),
            completions: at,
            p50_ms: None,
            p90_ms: None,
            p99_ms: None,
            rank: None,
            work_share: 0.1,
        };
        let scheduler = Scheduler {
            functions: (0..30).map(function).collect(),
            ..Scheduler::default()
        };
        state.take(Sample {
            scheduler: Some(scheduler),
            ..Sample::default()
        });
        state
    }

    fn press(state: &mut State, code: KeyCode) -> Action {
        take(state, &Event::Key(KeyEvent::new(code, KeyModifiers::NONE)))
    }

    fn control(state: &mut State, letter: char) -> Action {
        let key = KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
        take(state, &Event::Key(key))
    }

    fn click(state: &mut State, kind: MouseEventKind, column: u16, row: u16) {
        let mouse = MouseEvent {
            kind,
            column,
            row,
            modifiers: KeyModifiers::NONE,
        };
        assert_eq!(take(state, &Event::Mouse(mouse)), Action::Nothing);
    }

    #[test]
    fn keys_end_and_suspend() {
        let mut state = state();
        assert_eq!(press(&mut state, KeyCode::Char('q')), Action::Quit);
        assert_eq!(control(&mut state, 'c'), Action::Quit);
        assert_eq!(control(&mut state, 'z'), Action::Suspend);
        assert_eq!(control(&mut state, 'l'), Action::Redraw);
        assert_eq!(control(&mut state, 'x'), Action::Nothing);
    }

    #[test]
    fn keys_change_the_view() {
        let mut state = state();
        press(&mut state, KeyCode::Tab);
        assert_eq!(state.view, View::Functions);
        press(&mut state, KeyCode::BackTab);
        press(&mut state, KeyCode::BackTab);
        assert_eq!(state.view, View::Counters);
        press(&mut state, KeyCode::Char('3'));
        assert_eq!(state.view, View::Sandboxes);
        press(&mut state, KeyCode::Char('?'));
        assert!(state.helps);
        assert_eq!(press(&mut state, KeyCode::Char('p')), Action::Nothing);
        assert!(!state.helps && !state.is_paused);
    }

    #[test]
    fn keys_give_orders() {
        let mut state = state();
        let key = |state: &mut State, letter| press(state, KeyCode::Char(letter));
        assert_eq!(key(&mut state, 'p'), Action::Order(Order::Pause(true)));
        assert_eq!(key(&mut state, ' '), Action::Order(Order::Pause(false)));
        let two = Duration::from_secs(2);
        assert_eq!(key(&mut state, '+'), Action::Order(Order::Interval(two)));
        assert_eq!(key(&mut state, 'w'), Action::Order(Order::Waste(true)));
        assert_eq!(key(&mut state, 'w'), Action::Order(Order::Waste(false)));
        assert_eq!(key(&mut state, 'm'), Action::Mouse(false));
        state.note = Some("why".into());
        key(&mut state, 'x');
        assert_eq!(state.note, None);
    }

    #[test]
    fn keys_order_and_scroll_the_table() {
        let mut state = state();
        press(&mut state, KeyCode::Char('s'));
        press(&mut state, KeyCode::Char('r'));
        assert_eq!((state.functions.by, state.functions.reversed), (2, true));
        press(&mut state, KeyCode::Char('S'));
        press(&mut state, KeyCode::Char('S'));
        press(&mut state, KeyCode::Char('S'));
        assert_eq!(state.functions.by, 6);
        for (code, offset) in [
            (KeyCode::Down, 1),
            (KeyCode::PageDown, 11),
            (KeyCode::Up, 10),
            (KeyCode::End, 29),
            (KeyCode::Home, 0),
        ] {
            press(&mut state, code);
            assert_eq!(state.functions.offset, offset, "{code:?}");
        }
        state.view = View::Counters;
        press(&mut state, KeyCode::Char('s'));
        assert_eq!(state.counters.by, 0);
    }

    #[test]
    fn the_mouse_orders_scrolls_and_changes_the_view() {
        let mut state = state();
        state.spots = vec![
            (Rect::new(0, 0, 9, 1), Spot::Tab(View::Sandboxes)),
            (Rect::new(0, 1, 9, 1), Spot::Title(Table::Functions, 2)),
            (Rect::new(0, 1, 9, 9), Spot::Table(Table::Functions)),
        ];
        let left = MouseEventKind::Down(MouseButton::Left);
        click(&mut state, left, 3, 1);
        assert_eq!((state.functions.by, state.functions.reversed), (2, false));
        click(&mut state, left, 3, 1);
        assert!(state.functions.reversed);
        click(&mut state, MouseEventKind::ScrollDown, 3, 5);
        assert_eq!(state.functions.offset, 3);
        click(&mut state, MouseEventKind::ScrollUp, 3, 1);
        assert_eq!(state.functions.offset, 0);
        click(&mut state, left, 3, 0);
        assert_eq!(state.view, View::Sandboxes);
        click(&mut state, left, 30, 20);
        state.helps = true;
        click(&mut state, left, 30, 20);
        assert!(!state.helps);
    }
}
