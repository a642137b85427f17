//! Lines through points from the caller: the papers' figures.

use super::axis::Axis;
use super::{plain, range};
use crate::style::{self, mark, Style};
use crate::svg::{LinearAxis, Picture};
use faas_data::input::shorten;

/// Width of a chart, and height of the part with axes, in pixels.
const SIZE: (f64, f64) = (760.0, 400.0);
const LEFT: f64 = 70.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 50.0;

/// The legend: keys per line, and height of a line.
const KEYS: usize = 3;
const KEY_HEIGHT: f64 = 18.0;

/// Lines of at most this many points have a mark on each, longer ones a few
/// marks.
const MARKED: usize = 12;
const MARKS: usize = 4;

/// One line of a chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The name in the legend. Its first word decides the look, see [`style`].
    pub name: String,
    /// The points (x, y), in drawing order.
    pub points: Vec<(f64, f64)>,
}

/// A chart of lines.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// The file's name without `.svg`: letters, digits, points and hyphens.
    pub name: String,
    /// The title.
    pub title: String,
    /// The label of the horizontal axis, with its unit.
    pub x: String,
    /// The label of the vertical axis, with its unit.
    pub y: String,
    /// Whether the horizontal axis is logarithmic.
    pub log_x: bool,
    /// The lines.
    pub series: Vec<Series>,
}

impl Chart {
    /// The chart as a picture, with its title above and its legend below. Points
    /// that are not finite, or not positive on a logarithmic axis, are left out.
    /// `None` if no point is left.
    pub fn picture(&self) -> Option<Picture> {
        let shown: Vec<Vec<(f64, f64)>> = self.series.iter().map(|one| self.shown(one)).collect();
        let all = || shown.iter().flatten();
        let (x, y) = self.axes(
            range(all().map(|point| point.0))?,
            range(all().map(|point| point.1))?,
        );
        let lines = self.series.len().div_ceil(KEYS);
        let height = SIZE.1 + 8.0 + KEY_HEIGHT * lines as f64;
        let size = (SIZE.0, height);
        let mut picture = Picture::new(&self.name, size, &self.title, &self.description());
        picture.text("head", (LEFT, 20.0), "start", &self.title);
        self.frame(&mut picture, &x, &y);
        let names = self.series.iter().map(|one| scheduler(&one.name));
        let looks = style::styles_of(names);
        for (index, (one, look)) in self.series.iter().zip(looks).enumerate() {
            let points: Vec<(f64, f64)> = shown[index]
                .iter()
                .map(|(a, b)| (x.at(*a), y.at(*b)))
                .collect();
            curve(&mut picture, &one.name, look, &points);
            key(&mut picture, index, &one.name, look);
        }
        Some(picture)
    }

    /// The chart as the text of an SVG file; `None` if there is nothing to draw.
    pub fn svg(&self) -> Option<String> {
        Some(self.picture()?.file(&style::file()))
    }

    fn shown(&self, series: &Series) -> Vec<(f64, f64)> {
        let on_axis = |x: f64| x.is_finite() && (!self.log_x || x > 0.0);
        let points = series.points.iter().copied();
        points
            .filter(|(x, y)| on_axis(*x) && y.is_finite())
            .collect()
    }

    /// The axes; the vertical one begins at 0 or below, and ends at a round number.
    fn axes(&self, xs: (f64, f64), ys: (f64, f64)) -> (Axis, Axis) {
        let pixels = (LEFT, SIZE.0 - RIGHT);
        let x = if self.log_x {
            Axis::log(xs, pixels, plain)
        } else {
            Axis::linear(xs, pixels, plain)
        };
        let (low, high) = (ys.0.min(0.0), ys.1.max(0.0));
        let high = LinearAxis::new(low, high, 0.0, 1.0).round_high(TICKS - 1);
        (x, Axis::linear((low, high), (SIZE.1 - BOTTOM, TOP), plain))
    }

    fn description(&self) -> String {
        let scale = if self.log_x { " (log scale)" } else { "" };
        let names: Vec<&str> = self.series.iter().map(|one| one.name.as_str()).collect();
        format!(
            "To the right: {}{scale}; upwards: {}. Lines: {}.",
            self.x,
            self.y,
            names.join(", ")
        )
    }

    fn frame(&self, picture: &mut Picture, x: &Axis, y: &Axis) {
        let (right, bottom) = (SIZE.0 - RIGHT, SIZE.1 - BOTTOM);
        for tick in x.ticks(TICKS + 3) {
            let at = x.at(tick);
            picture.line("grid", (at, TOP), (at, bottom));
            picture.text("tick", (at, bottom + 17.0), "middle", &x.text(tick));
        }
        for tick in y.ticks(TICKS) {
            let at = y.at(tick);
            picture.line("grid", (LEFT, at), (right, at));
            picture.text("tick", (LEFT - 6.0, at + 4.0), "end", &y.text(tick));
        }
        let scale = if self.log_x { " (log scale)" } else { "" };
        let below = ((LEFT + right) / 2.0, SIZE.1 - 12.0);
        picture.text("label", below, "middle", &format!("{}{scale}", self.x));
        picture.upright("label", (16.0, (TOP + bottom) / 2.0), &self.y);
    }
}

/// Maximum number of ticks of the vertical axis; the horizontal one has space
/// for more.
const TICKS: u32 = 7;

/// The scheduler in a label such as `srtf (simulated)`.
fn scheduler(label: &str) -> &str {
    label.split(" (").next().unwrap_or(label)
}

/// The CSS class of a line; that of scx_sfs is wide.
fn line(name: &str, look: Style) -> String {
    let strong = if scheduler(name) == "scx_sfs" {
        " strong"
    } else {
        ""
    };
    format!("line{strong} {}", look.classes())
}

fn curve(picture: &mut Picture, name: &str, look: Style, points: &[(f64, f64)]) {
    if points.is_empty() {
        return;
    }
    picture.curve(&line(name, look), points, name);
    let marks = if points.len() <= MARKED {
        points.len()
    } else {
        MARKS
    };
    for place in 0..marks {
        // In the middle of equal parts of the line.
        let at = points[(2 * place + 1) * points.len() / (2 * marks)];
        picture.path(
            &format!("mark k{}", look.colour),
            &mark(look.mark, at),
            name,
        );
    }
}

fn key(picture: &mut Picture, place: usize, name: &str, look: Style) {
    let width = (SIZE.0 - LEFT - RIGHT) / KEYS as f64;
    let left = LEFT + width * (place % KEYS) as f64;
    let y = SIZE.1 + 4.0 + KEY_HEIGHT * (place / KEYS) as f64;
    picture.line(&line(name, look), (left, y), (left + 32.0, y));
    let outline = mark(look.mark, (left + 16.0, y));
    picture.path(&format!("mark k{}", look.colour), &outline, name);
    picture.text("name", (left + 40.0, y + 4.0), "start", &shorten(name, 28));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: Vec<(f64, f64)>) -> Chart {
        let series = |name: &str| Series {
            name: name.into(),
            points: points.clone(),
        };
        Chart {
            name: "c".into(),
            title: "T".into(),
            x: "turnaround, ms".into(),
            y: "share".into(),
            log_x: true,
            series: vec![series("eevdf"), series("scx_sfs (simulated)")],
        }
    }

    #[test]
    fn the_file_has_axes_lines_and_a_legend() {
        let svg = chart(vec![(1.0, 0.5), (10.0, 1.0)]).svg().unwrap();
        for part in [
            "<title>T</title>",
            "<desc>To the right: turnaround, ms (log scale); upwards: share. Lines: eevdf, \
             scx_sfs (simulated).</desc>",
            ">turnaround, ms (log scale)</text>",
            ">share</text>",
            ">0.2</text>",
            // Halfway up, then at the upper right corner of the axes.
            "<path class=\"line k0 d0\" d=\"M70.0 192.0L736.0 34.0\"><title>eevdf</title></path>",
            "<path class=\"line strong k1 d0\" d=\"M70.0 192.0L736.0 34.0\">\
             <title>scx_sfs (simulated)</title></path>",
            ">eevdf</text>",
            ">scx_sfs (simulated)</text>",
        ] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
        // Two marks on each line and one in each key.
        assert_eq!(svg.matches("<path class=\"mark ").count(), 6);
    }

    #[test]
    fn a_chart_without_points_is_none_and_odd_points_are_left_out() {
        assert_eq!(chart(vec![]).svg(), None);
        assert_eq!(chart(vec![(f64::NAN, f64::NAN)]).svg(), None);
        let odd = vec![(0.0, 0.1), (5.0, 1.0), (5.0, f64::NAN), (50.0, 2.0)];
        let even = vec![(5.0, 1.0), (50.0, 2.0)];
        assert_eq!(chart(odd).svg(), chart(even).svg());
    }

    #[test]
    fn long_lines_have_a_few_marks() {
        let points = (1..=100).map(|k| (f64::from(k), f64::from(k))).collect();
        let svg = chart(points).svg().unwrap();
        assert_eq!(svg.matches("<path class=\"mark ").count(), 2 * (MARKS + 1));
    }
}
