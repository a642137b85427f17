//! Small pictures of one kind, one per row, with the same axes: in one picture
//! their curves would hide each other.

use super::{milliseconds, range, rows, Row, WIDTH};
use crate::style::Style;
use crate::svg::{LinearAxis, LogAxis, Picture};
use crate::{label, Comparison};
use faas_data::summary::series::{ByService, OverTime};

const HEIGHT: f64 = 164.0;
const LEFT: f64 = 50.0;
const RIGHT: f64 = 8.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 22.0;

/// Width of a panel: two are side by side on a phone.
const PANEL: f64 = WIDTH / 2.0;

/// Columns of panels in their own file.
const COLUMNS: usize = 3;

/// The lower end of an axis of delays; shorter delays are drawn there.
const LEAST_DELAY_MS: f64 = 0.1;

/// One small picture for each row.
#[derive(Debug, Clone, PartialEq)]
pub struct Panels {
    /// The title of all of them.
    pub title: String,
    /// How to read them.
    pub caption: String,
    name: &'static str,
    /// The panels, each with the index of its row.
    pub panels: Vec<(usize, Picture)>,
}

impl Panels {
    /// Returns all of them in one picture, with title and caption.
    pub fn together(&self) -> Picture {
        const HEAD: f64 = 30.0;
        let lines = self.panels.len().div_ceil(COLUMNS);
        let width = PANEL * COLUMNS as f64;
        let caption = wrapped(&self.caption, 88);
        let foot = HEAD + HEIGHT * lines as f64 + 14.0;
        let height = foot + 17.0 * caption.len() as f64;
        let mut all = Picture::new(self.name, (width, height), &self.title, &self.caption);
        all.text("head", (LEFT, 18.0), "start", &self.title);
        for (place, (_, panel)) in self.panels.iter().enumerate() {
            let (column, line) = (place % COLUMNS, place / COLUMNS);
            let at = (PANEL * column as f64, HEAD + HEIGHT * line as f64);
            all.place(panel, at);
        }
        for (line, text) in caption.iter().enumerate() {
            let at = (12.0, foot + 17.0 * line as f64);
            all.text("tick", at, "start", text);
        }
        all
    }
}

/// `text` in lines of at most `most` characters, where its words allow.
fn wrapped(text: &str, most: usize) -> Vec<String> {
    crate::words::wrap(text, most)
        .lines()
        .map(str::to_string)
        .collect()
}

/// Turnaround against service time, both logarithmic.
pub fn by_service(comparison: &Comparison) -> Option<Panels> {
    let rows = rows(comparison);
    let shown: Vec<(Row, &ByService)> = rows
        .iter()
        .filter_map(|row| Some((*row, row.summary.by_service.as_ref()?)))
        .collect();
    let values = |of: fn(&ByService) -> &Vec<f64>| {
        range(shown.iter().flat_map(|(_, points)| of(points)).copied())
    };
    let (min, max) = values(|points| &points.service_ms)?;
    let low = values(|points| &points.turnaround_p50_ms)?.0;
    let high = values(|points| &points.turnaround_p99_ms)?.1;
    let x = LogAxis::new(min, max, LEFT, PANEL - RIGHT);
    let y = LogAxis::new(low.min(min), high, HEIGHT - BOTTOM, TOP);
    let base = base_of(comparison, &shown);
    let panel = |(row, points): &(Row, &ByService)| {
        let mut panel = panel("by-service", row);
        frame(&mut panel, &y);
        ticks_below(&mut panel, &x);
        let line = |values: &[f64]| -> Vec<(f64, f64)> {
            let pairs = points_of(&points.service_ms, values);
            pairs.map(|(a, b)| (x.at(a), y.at(b))).collect()
        };
        let even = [min, max].map(|at| (x.at(at), y.at(at)));
        panel.curve("even", &even, "turnaround = service time");
        if let Some((base, other)) = base.filter(|(base, _)| base.index != row.index) {
            let pairs = points_of(&other.service_ms, &other.turnaround_p50_ms);
            let pairs: Vec<(f64, f64)> = pairs.map(|(a, b)| (x.at(a), y.at(b))).collect();
            let class = format!("line thin {}", solid(base.style));
            panel.curve(&class, &pairs, &format!("median, {}", label(base.summary)));
        }
        let own = solid(row.style);
        let p99 = line(&points.turnaround_p99_ms);
        panel.curve(&format!("line thin d1 {own}"), &p99, "99th percentile");
        panel.curve(
            &format!("line {own}"),
            &line(&points.turnaround_p50_ms),
            "median",
        );
        (row.index, panel)
    };
    let base_name = base.map(|(base, _)| format!("; thin: median of {}", label(base.summary)));
    Some(Panels {
        title: "Turnaround against service time".into(),
        caption: format!(
            "Service time to the right, turnaround upwards, both on log scales. Solid: median of \
             invocations of about that service time; dashed: their 99th percentile; dotted \
             diagonal: turnaround = service time, the least possible{}.",
            base_name.unwrap_or_default()
        ),
        name: "turnaround-by-service",
        panels: shown.iter().map(panel).collect(),
    })
}

/// Queue delay over time.
pub fn queue_delay(comparison: &Comparison) -> Option<Panels> {
    let rows = rows(comparison);
    let shown: Vec<(Row, &OverTime)> = rows
        .iter()
        .filter_map(|row| Some((*row, row.summary.over_time.as_ref()?)))
        .collect();
    let delays = shown.iter().flat_map(|(_, time)| &time.max_queue_delay_ms);
    let high = range(delays.flatten().copied())?.1;
    let (from, to) = range(shown.iter().flat_map(|(_, time)| {
        let length = time.bin_ms * time.arrivals.len() as f64;
        [time.from_ms, time.from_ms + length]
    }))?;
    let x = LinearAxis::new(from / 1e3, to / 1e3, LEFT, PANEL - RIGHT);
    let y = LogAxis::new(LEAST_DELAY_MS, high.max(1.0), HEIGHT - BOTTOM, TOP);
    let base = base_of(comparison, &shown);
    let panel = |(row, time): &(Row, &OverTime)| {
        let mut panel = panel("queue-delay", row);
        frame(&mut panel, &y);
        seconds_below(&mut panel, &x);
        let area = area(time, &x, &y);
        panel.path(&format!("bar area k{}", row.style.colour), &area, "longest");
        if let Some((base, other)) = base.filter(|(base, _)| base.index != row.index) {
            let class = format!("line thin {}", solid(base.style));
            let title = format!("mean, {}", label(base.summary));
            panel.curve(&class, &means(other, &x, &y), &title);
        }
        let class = format!("line {}", solid(row.style));
        panel.curve(&class, &means(time, &x, &y), "mean");
        (row.index, panel)
    };
    let base_name = base.map(|(base, _)| format!("; thin: mean of {}", label(base.summary)));
    Some(Panels {
        title: "Queue delay over time".into(),
        caption: format!(
            "Time of arrival in seconds to the right, time until it first ran upwards, on a log \
             scale that ends at {} (less stands there, too). Line: mean; area: longest, of the \
             invocations that arrived in a stretch of time{}.",
            milliseconds(LEAST_DELAY_MS),
            base_name.unwrap_or_default()
        ),
        name: "queue-delay",
        panels: shown.iter().map(panel).collect(),
    })
}

fn base_of<'a, T: Copy>(comparison: &Comparison, shown: &[(Row<'a>, T)]) -> Option<(Row<'a>, T)> {
    let is_base = |row: &Row| comparison.baseline == Some(row.index);
    shown.iter().find(|(row, _)| is_base(row)).copied()
}

/// Without the kind of line: in a panel a row's line is the only one of its
/// kind.
fn solid(style: Style) -> String {
    format!("k{}", style.colour)
}

fn panel(name: &str, row: &Row) -> Picture {
    let title = label(row.summary);
    let name = format!("{name}-{}", row.index);
    let mut panel = Picture::new(
        &name,
        (PANEL, HEIGHT),
        &title,
        "One of several small pictures; what they show stands below all of them.",
    );
    let shown = faas_data::input::shorten(&title, 20);
    panel.text("head", (LEFT, 14.0), "start", &shown);
    panel
}

fn frame(panel: &mut Picture, y: &LogAxis) {
    for tick in y.ticks_up_to(5) {
        let at = y.at(tick);
        panel.line("grid", (LEFT, at), (PANEL - RIGHT, at));
        panel.text("tick", (LEFT - 4.0, at + 4.0), "end", &milliseconds(tick));
    }
}

fn ticks_below(panel: &mut Picture, x: &LogAxis) {
    for tick in x.ticks_up_to(3) {
        let at = x.at(tick);
        panel.line("grid", (at, TOP), (at, HEIGHT - BOTTOM));
        let text = milliseconds(tick);
        panel.text("tick", (at, HEIGHT - 6.0), anchor(at), &text);
    }
}

fn seconds_below(panel: &mut Picture, x: &LinearAxis) {
    // Longer numbers need more space.
    let most = if x.high() < 100.0 { 5 } else { 3 };
    for tick in x.ticks(most) {
        let at = x.at(tick);
        panel.line("grid", (at, TOP), (at, HEIGHT - BOTTOM));
        let text = format!("{} s", super::plain(tick));
        panel.text("tick", (at, HEIGHT - 6.0), anchor(at), &text);
    }
}

/// The anchor of a tick's text that keeps it inside the picture.
fn anchor(at: f64) -> &'static str {
    if at > PANEL - RIGHT - 14.0 {
        "end"
    } else {
        "middle"
    }
}

fn points_of<'a>(a: &'a [f64], b: &'a [f64]) -> impl Iterator<Item = (f64, f64)> + 'a {
    a.iter().copied().zip(b.iter().copied())
}

/// The middle of a bin, in seconds.
fn middle(time: &OverTime, bin: usize) -> f64 {
    (time.from_ms + time.bin_ms * (bin as f64 + 0.5)) / 1e3
}

fn means(time: &OverTime, x: &LinearAxis, y: &LogAxis) -> Vec<(f64, f64)> {
    let means = time.mean_queue_delay_ms.iter().enumerate();
    means
        .filter_map(|(bin, mean)| Some((x.at(middle(time, bin)), y.at((*mean)?))))
        .collect()
}

/// The outline of the longest delays, down to the lower end.
fn area(time: &OverTime, x: &LinearAxis, y: &LogAxis) -> String {
    let bottom = y.at(0.0);
    let longest = time.max_queue_delay_ms.iter().enumerate();
    let points: Vec<(f64, f64)> = longest
        .filter_map(|(bin, longest)| Some((x.at(middle(time, bin)), y.at((*longest)?))))
        .collect();
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return "M0 0".into();
    };
    let mut path = format!("M{:.1} {bottom:.1}", first.0);
    for (x, y) in &points {
        path.push_str(&format!("L{x:.1} {y:.1}"));
    }
    path + &format!("L{:.1} {bottom:.1}Z", last.0)
}
