//! S and inter-arrival time over time.

use super::{milliseconds, plain, range, rows, Row, WIDTH};
use crate::svg::{LinearAxis, LogAxis, Picture};
use crate::{label, Comparison};
use faas_data::summary::series::OverTime;
use faas_data::summary::slice::SliceLog;

const HEIGHT: f64 = 290.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 46.0;

/// Mean inter-arrival time over time, and S of schedulers that log it; time in
/// fair-only mode is shaded.
pub fn slice(comparison: &Comparison) -> Option<Picture> {
    let rows = rows(comparison);
    let time = rows.iter().find_map(|row| row.summary.over_time.as_ref())?;
    let logs: Vec<(Row, &SliceLog)> = rows
        .iter()
        .filter_map(|row| Some((*row, row.summary.slice.as_ref()?)))
        .collect();
    let end_ms = time.from_ms + time.bin_ms * time.arrivals.len() as f64;
    let iat = mean_iat(time);
    let values = iat.iter().map(|(_, ms)| *ms);
    let values = values.chain(logs.iter().flat_map(|(_, log)| log.s_ms.iter().copied()));
    let (min, max) = range(values)?;
    let keys = logs.len() + 1;
    let height = HEIGHT + 18.0 * keys as f64;
    let size = (WIDTH, height);
    let mut picture = Picture::new("slice", size, title(&logs), &describe(&logs));
    let x = LinearAxis::new(time.from_ms / 1e3, end_ms / 1e3, LEFT, WIDTH - RIGHT);
    let y = LogAxis::new(min, max, HEIGHT - BOTTOM, TOP);
    for (_, log) in &logs {
        shade(&mut picture, log, &x, end_ms);
    }
    frame(&mut picture, &x, &y);
    let points: Vec<(f64, f64)> = iat.iter().map(|(s, ms)| (x.at(*s), y.at(*ms))).collect();
    picture.curve("line k0", &points, "mean inter-arrival time");
    key(&mut picture, 0, "line k0", "mean inter-arrival time");
    for (place, (row, log)) in logs.iter().enumerate() {
        let class = format!("line strong {}", row.style.classes());
        let name = format!("S, {}", label(row.summary));
        let points = steps(log, &x, &y, end_ms);
        picture.curve(&format!("{class} {}", row.class()), &points, &name);
        key(&mut picture, place + 1, &class, &name);
    }
    Some(picture)
}

fn title(logs: &[(Row, &SliceLog)]) -> &'static str {
    if logs.is_empty() {
        "Inter-arrival time over time"
    } else {
        "S and inter-arrival time over time"
    }
}

fn describe(logs: &[(Row, &SliceLog)]) -> String {
    let one = |(row, log): &(Row, &SliceLog)| {
        let first = log.s_ms.first().copied().unwrap_or_default();
        let last = log.s_ms.last().copied().unwrap_or_default();
        let changes = log.s_ms.windows(2).filter(|two| two[0] != two[1]).count();
        format!(
            "{}: S is {} at first and {} at last, with {changes} changes.",
            label(row.summary),
            milliseconds(first),
            milliseconds(last)
        )
    };
    let mut all: Vec<String> = vec!["Time to the right, milliseconds upwards (log scale).".into()];
    all.extend(logs.iter().map(one));
    all.join(" ")
}

/// Middles of the bins in seconds, and the mean inter-arrival time in them in
/// milliseconds; bins without arrivals are left out.
fn mean_iat(time: &OverTime) -> Vec<(f64, f64)> {
    let bins = time.arrivals.iter().enumerate();
    bins.filter(|(_, arrivals)| **arrivals > 0)
        .map(|(bin, arrivals)| {
            let middle = time.from_ms + time.bin_ms * (bin as f64 + 0.5);
            (middle / 1e3, time.bin_ms / *arrivals as f64)
        })
        .collect()
}

fn frame(picture: &mut Picture, x: &LinearAxis, y: &LogAxis) {
    let bottom = HEIGHT - BOTTOM;
    for tick in y.ticks_up_to(8) {
        let at = y.at(tick);
        picture.line("grid", (LEFT, at), (WIDTH - RIGHT, at));
        picture.text("tick", (LEFT - 6.0, at + 4.0), "end", &milliseconds(tick));
    }
    for tick in x.ticks(6) {
        let at = x.at(tick);
        picture.line("grid", (at, TOP), (at, bottom));
        picture.text(
            "tick",
            (at, bottom + 16.0),
            "middle",
            &format!("{} s", plain(tick)),
        );
    }
    let middle = (LEFT + WIDTH - RIGHT) / 2.0;
    picture.text(
        "label",
        (middle, HEIGHT - 10.0),
        "middle",
        "time since the start of the trace",
    );
}

fn key(picture: &mut Picture, place: usize, class: &str, text: &str) {
    let y = HEIGHT + 8.0 + 18.0 * place as f64;
    picture.line(class, (LEFT, y - 4.0), (LEFT + 32.0, y - 4.0));
    picture.text(
        "name",
        (LEFT + 40.0, y),
        "start",
        &faas_data::input::shorten(text, 44),
    );
}

/// S as steps up to the end of the arrivals.
fn steps(log: &SliceLog, x: &LinearAxis, y: &LogAxis, end_ms: f64) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    for (index, (at, s)) in log.at_ms.iter().zip(&log.s_ms).enumerate() {
        let until = log.at_ms.get(index + 1).copied().unwrap_or(end_ms);
        if *at > end_ms {
            break;
        }
        points.push((x.at(at / 1e3), y.at(*s)));
        points.push((x.at(until / 1e3), y.at(*s)));
    }
    points
}

/// A band for each period in fair-only mode.
fn shade(picture: &mut Picture, log: &SliceLog, x: &LinearAxis, end_ms: f64) {
    for (index, (at, fair_only)) in log.at_ms.iter().zip(&log.fair_only).enumerate() {
        let until = log.at_ms.get(index + 1).copied().unwrap_or(end_ms);
        if *fair_only && *at < end_ms {
            let (bottom, middle) = (HEIGHT - BOTTOM, (HEIGHT - BOTTOM + TOP) / 2.0);
            let pixels = (x.at(at / 1e3), x.at(until / 1e3));
            picture.bar("band", pixels, middle, bottom - TOP, "fair-only mode");
        }
    }
}
