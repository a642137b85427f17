//! Bars that leave the baseline to the left (less) or to the right (more).

use super::{range, rows, times, Row, WIDTH};
use crate::svg::{LogAxis, Picture};
use crate::{label, Comparison};
use faas_data::summary::Summary;

const LEFT: f64 = 118.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 6.0;
const BOTTOM: f64 = 46.0;

/// Height of a bar, and space between rows.
const BAR: f64 = 12.0;
const GAP: f64 = 8.0;

/// Space for a number beside a bar.
const NUMBER: f64 = 40.0;

/// Mean turnaround of the short and the long invocations relative to the
/// baseline; nothing without a baseline.
pub fn relative(comparison: &Comparison) -> Option<Picture> {
    let bars = Bars {
        name: "turnaround-ratio",
        title: "Mean turnaround against the baseline",
        axis: "mean turnaround",
        parts: &[("short", ""), ("long", " pale")],
    };
    let short = |row: &Summary| Some(row.short.turnaround_ms?.mean);
    let long = |row: &Summary| Some(row.long.turnaround_ms?.mean);
    bars.draw(comparison, &[short, long], |_| true)
}

/// Involuntary switches relative to the baseline. Those of a simulation cost
/// nothing and are not shown.
pub fn switches(comparison: &Comparison) -> Option<Picture> {
    let bars = Bars {
        name: "switch-ratio",
        title: "Involuntary switches against the baseline",
        axis: "involuntary switches",
        parts: &[("", "")],
    };
    let involuntary = |row: &Summary| row.switches.map(|switches| switches.involuntary);
    bars.draw(comparison, &[involuntary], |row| !row.is_simulated())
}

/// The definition of a bar chart.
struct Bars {
    name: &'static str,
    title: &'static str,
    /// The label of the axis.
    axis: &'static str,
    /// The parts of each row: name, and CSS class of its bar.
    parts: &'static [(&'static str, &'static str)],
}

type Value = fn(&Summary) -> Option<f64>;

impl Bars {
    fn draw(
        &self,
        comparison: &Comparison,
        values: &[Value],
        shown: fn(&Summary) -> bool,
    ) -> Option<Picture> {
        let base = comparison.base().filter(|base| shown(base))?;
        let rows = rows(comparison);
        let ratios: Vec<(Row, Vec<Option<f64>>)> = rows
            .into_iter()
            .filter(|row| comparison.baseline != Some(row.index) && shown(row.summary))
            .map(|row| (row, ratios(row.summary, base, values)))
            .filter(|(_, ratios)| ratios.iter().any(Option::is_some))
            .collect();
        let all = || {
            ratios
                .iter()
                .flat_map(|(_, ratios)| ratios.iter().flatten())
        };
        let (min, max) = range(all().copied())?;
        let row_height = BAR * self.parts.len() as f64 + GAP;
        let bottom = TOP + row_height * ratios.len() as f64;
        let size = (WIDTH, bottom + BOTTOM);
        let mut picture = Picture::new(self.name, size, self.title, &self.describe(&ratios));
        let x = axis(min.min(1.0), max.max(1.0));
        self.frame(&mut picture, &x, bottom, &base.scheduler.name);
        for (place, (row, ratios)) in ratios.iter().enumerate() {
            let top = TOP + row_height * place as f64 + GAP / 2.0;
            self.row(&mut picture, &x, top, row, ratios);
        }
        Some(picture)
    }

    fn describe(&self, rows: &[(Row, Vec<Option<f64>>)]) -> String {
        let one = |(row, ratios): &(Row, Vec<Option<f64>>)| {
            let part = |((name, _), ratio): (&(&str, &str), &Option<f64>)| {
                ratio.map(|ratio| format!("{name} {ratio:.2}x").trim().to_string())
            };
            let parts: Vec<String> = self.parts.iter().zip(ratios).filter_map(part).collect();
            format!("{}: {}", label(row.summary), parts.join(", "))
        };
        let all: Vec<String> = rows.iter().map(one).collect();
        format!(
            "Bars to the left of 1 are less than the baseline. {}.",
            all.join("; ")
        )
    }

    fn frame(&self, picture: &mut Picture, x: &LogAxis, bottom: f64, base: &str) {
        for tick in x.ticks_up_to(5) {
            picture.line("grid", (x.at(tick), TOP), (x.at(tick), bottom));
            picture.text("tick", (x.at(tick), bottom + 16.0), "middle", &times(tick));
        }
        picture.line("axis", (x.at(1.0), TOP), (x.at(1.0), bottom));
        let base = faas_data::input::shorten(base, 16);
        let text = format!("{} / {base}'s (log scale)", self.axis);
        picture.text("label", (WIDTH / 2.0, bottom + 36.0), "middle", &text);
    }

    fn row(&self, picture: &mut Picture, x: &LogAxis, top: f64, row: &Row, ratios: &[Option<f64>]) {
        let name = label(row.summary);
        let middle = top + BAR * self.parts.len() as f64 / 2.0;
        let shown = faas_data::input::shorten(&name, 18);
        picture.begin(&row.class());
        picture.text("name", (LEFT - 8.0, middle + 4.0), "end", &shown);
        for (place, ((part, pale), ratio)) in self.parts.iter().zip(ratios).enumerate() {
            let Some(ratio) = *ratio else { continue };
            let y = top + BAR * (place as f64 + 0.5);
            let title = format!("{name} {part}: {ratio:.2}x");
            let class = format!("bar k{}{pale}", row.style.colour);
            picture.bar(&class, (x.at(1.0), x.at(ratio)), y, BAR - 1.0, &title);
            let (beside, anchor) = if ratio < 1.0 {
                (-4.0, "end")
            } else {
                (4.0, "start")
            };
            let at = (x.at(ratio) + beside, y + 4.0);
            picture.text("tick", at, anchor, &format!("{ratio:.2}x"));
        }
        picture.end();
    }
}

/// An axis with space for the numbers beside the bars.
fn axis(min: f64, max: f64) -> LogAxis {
    let (from, to) = (LEFT + 4.0, WIDTH - RIGHT);
    let left = if min < 1.0 { NUMBER } else { 0.0 };
    let right = if max > 1.0 { NUMBER } else { 0.0 };
    let decades = libm::log10(max / min).max(0.1);
    let per_pixel = decades / (to - from - left - right);
    let low = min / libm::pow(10.0, left * per_pixel);
    LogAxis::exact(low, max * libm::pow(10.0, right * per_pixel), from, to)
}

fn ratios(row: &Summary, base: &Summary, values: &[Value]) -> Vec<Option<f64>> {
    let ratio = |value: &Value| {
        let (own, base) = (value(row)?, value(base)?);
        (own > 0.0 && base > 0.0).then_some(own / base)
    };
    values.iter().map(ratio).collect()
}
