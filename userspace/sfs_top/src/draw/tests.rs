//! Screens of several sizes, as text.

use std::time::Duration;

use ratatui::backend::TestBackend;
use ratatui::style::Color;
use ratatui::Terminal;
use sfs_statistics::FunctionReport;

use super::{draw, Theme};
use crate::plain;
use crate::sample::{Machine, Sample, Sandbox, Sandboxes, Scheduler, Waste};
use crate::state::{Spot, State, Table, View};

fn function(at: u32) -> FunctionReport {
    FunctionReport {
        key: 0,
        function: format!("functions/f{at:02}"),
        completions: 100 * at,
        p50_ms: Some(f64::from(at)),
        p90_ms: Some(2.0 * f64::from(at)),
        p99_ms: (at != 3).then_some(3.0 * f64::from(at)),
        rank: Some(at as u8),
        work_share: 0.2 / f64::from(at),
    }
}

fn sandbox(at: u64) -> Sandbox {
    Sandbox {
        cgroup: format!("functions/f{at:02}-0"),
        cpus_used: Some(0.1 * at as f64),
        share: Some(0.05),
        pressure_share: Some(0.5),
        tasks: Some(at),
        weight: Some(100),
        ..Sandbox::default()
    }
}

fn sample(arrivals: u64) -> Sample {
    let mut scheduler = Scheduler {
        pid: Some(161),
        interval_s: 1.0,
        functions: (1..=30).map(function).collect(),
        ..Scheduler::default()
    };
    let metrics = &mut scheduler.metrics;
    metrics.build = "0.1.0 x86_64-unknown-linux-gnu".into();
    metrics.policy = "learned".into();
    metrics.slice_us = 12_345;
    metrics.uptime_s = 3723;
    metrics.cpus = 4;
    metrics.functions = 30;
    metrics.arrivals = arrivals;
    metrics.completions = 99;
    metrics.queued_ranked = 7;
    metrics.queue_delay_mean_us = 1500.0;
    Sample {
        scheduler: Some(scheduler),
        machine: Machine {
            cpus: 4,
            busy_share: Some(0.975),
            load: Some([12.3, 8.1, 3.0]),
            runnable: Some(11),
            pressure_share: Some(0.88),
        },
        sandboxes: Some(Sandboxes {
            list: (1..=20).map(sandbox).collect(),
            more: false,
        }),
        ..Sample::default()
    }
}

fn state() -> State {
    let mut state = State::new(Duration::from_secs(1));
    for arrivals in [10, 20, 40, 80, 102] {
        state.take(sample(arrivals));
    }
    state
}

fn screen_in(state: &mut State, theme: Theme, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, state, theme)).unwrap();
    terminal
}

fn screen(state: &mut State, width: u16, height: u16) -> Vec<String> {
    let terminal = screen_in(state, Theme::new(false, true), width, height);
    let cells = terminal.backend().buffer().content();
    let rows = cells.chunks(usize::from(width));
    rows.map(|row| {
        let line: String = row.iter().map(|cell| cell.symbol()).collect();
        line.trim_end().to_owned()
    })
    .collect()
}

#[test]
fn the_overview_fits_80x24() {
    let lines = screen(&mut state(), 80, 24);
    let expected = "\
scx_sfs 0.1.0  policy learned  mode FILTER  S 12.3 ms  up 1:02:03  pid 161
4 CPUs  load 12.30 8.10 3.00  30 functions  0 sandboxes  0 rank tables
 1 Overview  2 Functions  3 Sandboxes  4 Counters                      every 1 s
busy         97.5%                ▇▇▇▇▇  arrivals     102/s                ▁▁▃▆█
runnable        11               █████   done          99/s               █████
pressure     88.0%               ▇▇▇▇▇   demoted        0/s
waiting          7               █████   mode        FILTER
in FAIR          0                       outside          0
delay       1.5 ms               █████   wasted           -
FUNCTION                            WORK    DONE   P50 ms   P90 ms   P99 ms RANK
functions/f01                      20.0%     100     1.00     2.00     3.00    1
functions/f02                      10.0%     200     2.00     4.00     6.00    2
functions/f03                       6.7%     300     3.00     6.00        -    3
functions/f04                       5.0%     400     4.00     8.00     12.0    4
functions/f05                       4.0%     500     5.00     10.0     15.0    5
functions/f06                       3.3%     600     6.00     12.0     18.0    6
SANDBOX (CGROUP)                       CPU  SHARE   WAIT  TASKS WEIGHT  QUOTA
functions/f20-0                       200%   5.0%  50.0%     20    100      -";
    let expected: Vec<&str> = expected.lines().collect();
    for (line, expected) in lines.iter().zip(&expected) {
        assert_eq!(
            line.replace(' ', ""),
            expected.replace(' ', ""),
            "{lines:#?}"
        );
    }
    assert!(lines.iter().all(|line| line.chars().count() <= 80));
    assert!(lines[23].starts_with("q quit  ? help"), "{lines:#?}");
}

#[test]
fn a_large_screen_shows_more_of_everything() {
    let mut state = state();
    let lines = screen(&mut state, 120, 40);
    let rows = |lines: &[String], start: &str| {
        let fits = |line: &&String| line.starts_with(start);
        lines.iter().filter(fits).count()
    };
    // f..-0 are sandboxes.
    assert_eq!(rows(&lines, "functions/f"), 22, "{lines:#?}");
    assert!(lines[1].contains("0 rank tables"), "{lines:#?}");
    // The graphs have two lines each.
    assert!(lines[4].starts_with("busy"), "{lines:#?}");
    assert!(lines[6].starts_with("runnable"), "{lines:#?}");
    state.view = View::Functions;
    let lines = screen(&mut state, 120, 40);
    assert_eq!(rows(&lines, "functions/f"), 30, "{lines:#?}");
    state.view = View::Sandboxes;
    let lines = screen(&mut state, 120, 40);
    assert_eq!(rows(&lines, "functions/f"), 20, "{lines:#?}");
    state.view = View::Counters;
    let lines = screen(&mut state, 120, 40);
    let arrivals = lines.iter().find(|line| line.starts_with("arrivals"));
    let words: Vec<&str> = arrivals.unwrap().split_whitespace().collect();
    assert_eq!(words, ["arrivals", "102", "252", "Invocations", "begun"]);
}

#[test]
fn no_size_is_too_small() {
    let mut full = state();
    full.watches_waste = true;
    full.note = Some("a sentence".into());
    for mut state in [State::new(Duration::from_secs(1)), full] {
        for view in View::ALL {
            for (width, height) in
                (0..=30).flat_map(|width| (0..=12).map(move |height| (width, height)))
            {
                (state.view, state.helps) = (view, width % 2 == 0);
                let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
                let theme = Theme::new(true, false);
                terminal
                    .draw(|frame| draw(frame, &mut state, theme))
                    .unwrap();
            }
        }
    }
    assert_eq!(screen(&mut self::state(), 1, 1), ["s"]);
}

#[test]
fn without_a_scheduler_the_screen_says_so() {
    let mut state = state();
    state.take(Sample {
        missing: Some("no scx_sfs is running".into()),
        machine: sample(0).machine,
        ..Sample::default()
    });
    let lines = screen(&mut state, 80, 24);
    assert_eq!(lines[0], "no scx_sfs is running; waiting for one");
    assert!(lines[1].starts_with("4 CPUs  load 12.30"), "{lines:#?}");
    assert!(
        lines.iter().any(|line| line == "no scheduler answers"),
        "{lines:#?}"
    );
    let arrivals = lines.iter().find(|line| line.contains("arrivals")).unwrap();
    // Its past is still there.
    assert!(arrivals.contains("arrivals         - "), "{arrivals}");
    assert!(arrivals.contains('█'), "{arrivals}");
}

#[test]
fn tables_say_why_they_are_empty() {
    let mut state = State::new(Duration::from_secs(1));
    let mut sample = sample(1);
    let scheduler = sample.scheduler.as_mut().unwrap();
    scheduler.functions.clear();
    scheduler.metrics.policy = "sfs".into();
    sample.sandboxes = None;
    state.take(sample);
    let lines = screen(&mut state, 80, 24);
    let sentence = "functions are learned with --policy learned only";
    assert_eq!(lines[10], sentence, "{lines:#?}");
    assert!(!lines.iter().any(|line| line.contains("SANDBOX")));
    state.view = View::Sandboxes;
    let lines = screen(&mut state, 80, 24);
    assert_eq!(lines[4], "without --cgroup there are no sandboxes");
}

#[test]
fn the_mouse_finds_what_was_drawn() {
    let mut state = state();
    let lines = screen(&mut state, 80, 24);
    let at = |state: &State, row: usize, word: &str| {
        let column = lines[row].find(word).unwrap();
        state.spot(column as u16, row as u16)
    };
    assert_eq!(at(&state, 2, "Sandboxes"), Some(Spot::Tab(View::Sandboxes)));
    let row = lines.iter().position(|line| line.starts_with("FUNCTION"));
    let row = row.unwrap();
    assert_eq!(
        at(&state, row, "P99"),
        Some(Spot::Title(Table::Functions, 5))
    );
    assert_eq!(
        at(&state, row + 1, "functions"),
        Some(Spot::Table(Table::Functions))
    );
    let row = lines.iter().position(|line| line.starts_with("SANDBOX"));
    let row = row.unwrap();
    assert_eq!(
        at(&state, row, "TASKS"),
        Some(Spot::Title(Table::Sandboxes, 4))
    );
    assert_eq!(state.spot(0, 4), None);
}

#[test]
fn a_table_is_scrolled_to_its_end_and_no_further() {
    let mut state = state();
    state.view = View::Functions;
    state.functions.scroll(1000, 30);
    let lines = screen(&mut state, 80, 24);
    assert!(lines[22].starts_with("functions/f30"), "{lines:#?}");
    assert!(lines[4].starts_with("functions/f12"), "{lines:#?}");
    assert_eq!(state.functions.offset, 11);
}

#[test]
fn waste_notes_and_a_pause_are_shown() {
    let mut state = state();
    let mut sample = sample(1);
    sample.waste = Some(Waste {
        wasted_ms: 12.5,
        longest_ms: 4.0,
        watched_ms: 1000.0,
        lost_events: 0,
        longest: Some("f (7) waited 4.00 ms while CPU 1 idled, from 2.000 s on".into()),
    });
    state.take(sample);
    (state.watches_waste, state.is_paused) = (true, true);
    let lines = screen(&mut state, 80, 24);
    assert!(lines[8].contains("wasted    12.5ms/s"), "{lines:#?}");
    assert!(lines[2].ends_with("PAUSED"), "{lines:#?}");
    assert!(
        lines[23].starts_with("wasted: f (7) waited 4.00 ms"),
        "{lines:#?}"
    );
    state.note = Some("the kernel refuses it".into());
    assert_eq!(screen(&mut state, 80, 24)[23], "the kernel refuses it");
}

#[test]
fn the_help_lists_the_keys() {
    let mut state = state();
    state.helps = true;
    let lines = screen(&mut state, 80, 24);
    let text = lines.join("\n");
    assert!(text.contains("┌ Keys "), "{text}");
    for (keys, meaning) in crate::keys::KEYS {
        assert!(
            text.contains(keys) && text.contains(meaning),
            "{keys}: {text}"
        );
    }
}

#[test]
fn colours_and_characters_follow_the_theme() {
    let colours = |theme| {
        let terminal = screen_in(&mut state(), theme, 80, 24);
        let cells = terminal.backend().buffer().content().iter();
        cells
            .filter(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset)
            .count()
    };
    assert_eq!(colours(Theme::new(false, true)), 0);
    assert!(colours(Theme::new(true, true)) > 0);
    let terminal = screen_in(&mut state(), Theme::new(false, false), 80, 24);
    let cells = terminal.backend().buffer().content();
    assert!(cells.iter().all(|cell| cell.symbol().is_ascii()));
}

#[test]
fn a_screen_is_text_as_well() {
    let mut state = state();
    let text = plain::text(&state, None);
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    for part in [
        "scx_sfs 0.1.0  policy learned  mode FILTER",
        "arrivals     102/s",
        "functions/f20 ",
        "and 10 more",
        "SANDBOX (CGROUP)",
        "functions/f01-0 ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let long = format!("kubepods.slice/{}.scope", "9ab".repeat(30));
    let sandboxes = state.sample.as_mut().unwrap().sandboxes.as_mut().unwrap();
    sandboxes.list[0].cgroup.clone_from(&long);
    assert!(plain::text(&state, None).contains(&long));
    let text = plain::text(&state, Some(60));
    assert!(
        text.lines().all(|line| line.chars().count() <= 60),
        "{text}"
    );
    assert!(text.contains("b9ab.scope"), "{text}");
}
