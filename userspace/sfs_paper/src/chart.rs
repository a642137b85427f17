//! Charts as SVG, one colour for each scheduler everywhere.

use anyhow::{anyhow, Result};
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::ops::Range;

const SIZE: (u32, u32) = (760, 420);

/// Colours that differ for the colour-blind as well (Okabe and Ito).
const COLOURS: [RGBColor; 6] = [
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0x7a, 0x5c, 0x2e),
    RGBColor(0x6a, 0x3d, 0x9a),
];

/// One line of a chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its points.
    pub points: Vec<(f64, f64)>,
}

/// A chart of lines.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// The file's name without `.svg`.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// What is on the horizontal axis, with its unit.
    pub x: String,
    /// What is on the vertical axis, with its unit.
    pub y: String,
    /// Whether the horizontal axis is logarithmic.
    pub log_x: bool,
    /// The lines.
    pub series: Vec<Series>,
}

/// The colour of a row: fixed for those that stand in most charts, in turn for
/// the others.
fn colour(name: &str, index: usize) -> RGBColor {
    let name = name.split(" (").next().unwrap_or(name);
    match name {
        "eevdf" => RGBColor(0x86, 0x8e, 0x96),
        "scx_sfs" => RGBColor(0x00, 0x72, 0xb2),
        "srtf" => RGBColor(0x00, 0x9e, 0x73),
        "ideal" => BLACK,
        _ => COLOURS[index % COLOURS.len()],
    }
}

impl Chart {
    /// The chart as text of an SVG file.
    ///
    /// # Errors
    /// If it has no point at all.
    pub fn svg(&self) -> Result<String> {
        let points = || self.series.iter().flat_map(|one| one.points.iter());
        let finite = |value: &f64| value.is_finite() && (!self.log_x || *value > 0.0);
        let xs = extent(points().map(|point| point.0).filter(finite));
        let ys = extent(
            points()
                .map(|point| point.1)
                .filter(|value| value.is_finite()),
        );
        let (Some(xs), Some(ys)) = (xs, ys) else {
            return Err(anyhow!("there is nothing to draw in {}", self.name));
        };
        let top = if ys.1 > 0.0 { ys.1 * 1.05 } else { 1.0 };
        let ys = ys.0.min(0.0)..top;
        let mut text = String::new();
        {
            let root = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
            root.fill(&WHITE).map_err(|error| anyhow!("{error}"))?;
            if self.log_x {
                let xs = (xs.0 * 0.9)..(xs.1 * 1.1);
                self.draw(&root, xs.log_scale(), ys)?;
            } else {
                self.draw(&root, xs.0..xs.1.max(xs.0 + 1e-9), ys)?;
            }
            root.present().map_err(|error| anyhow!("{error}"))?;
        }
        Ok(text)
    }

    fn draw<X>(
        &self,
        root: &DrawingArea<SVGBackend<'_>, Shift>,
        xs: X,
        ys: Range<f64>,
    ) -> Result<()>
    where
        X: AsRangedCoord<Value = f64>,
        X::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        let failed = |error: DrawingAreaErrorKind<_>| anyhow!("{}: {error}", self.name);
        let mut chart = ChartBuilder::on(root)
            .caption(&self.title, ("sans-serif", 18))
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(xs, ys)
            .map_err(failed)?;
        chart
            .configure_mesh()
            .x_desc(&self.x)
            .y_desc(&self.y)
            .x_label_formatter(&|value| plain(*value))
            .y_label_formatter(&|value| plain(*value))
            .light_line_style(WHITE)
            .label_style(("sans-serif", 13))
            .draw()
            .map_err(failed)?;
        for (index, series) in self.series.iter().enumerate() {
            let style = colour(&series.name, index).stroke_width(2);
            let points = series.points.iter().copied();
            let points = points.filter(|(x, y)| y.is_finite() && (!self.log_x || *x > 0.0));
            chart
                .draw_series(LineSeries::new(points, style))
                .map_err(failed)?
                .label(&series.name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
        }
        chart
            .configure_series_labels()
            .position(if self.log_x {
                // Where a distribution never is.
                SeriesLabelPosition::LowerRight
            } else {
                SeriesLabelPosition::UpperLeft
            })
            .background_style(WHITE.mix(0.85))
            .border_style(RGBColor(0xd8, 0xde, 0xe4))
            .label_font(("sans-serif", 13))
            .draw()
            .map_err(failed)?;
        Ok(())
    }

    /// The points as CSV: `series,x,y`.
    ///
    /// # Errors
    /// Never in practice.
    pub fn csv(&self) -> Result<Vec<u8>> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(["series", &self.x, &self.y])?;
        for series in &self.series {
            for (x, y) in &series.points {
                writer.write_record([&series.name, &format!("{x:.4}"), &format!("{y:.4}")])?;
            }
        }
        Ok(writer.into_inner()?)
    }
}

/// A number for an axis: no more digits than it has.
fn plain(value: f64) -> String {
    let text = if value.abs() >= 10.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.3}")
    };
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

fn extent(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |found, value| {
        let (low, high) = found.unwrap_or((value, value));
        Some((value.min(low), value.max(high)))
    })
}

/// Points of the cumulative distribution of `values` in order: at most 400,
/// the last few of them the tail.
pub fn cdf(sorted: &[f64]) -> Vec<(f64, f64)> {
    let count = sorted.len();
    let step = (count / 400).max(1);
    let last = count.saturating_sub(step);
    let ranks = (0..last).step_by(step).chain(last..count);
    ranks
        .map(|rank| (sorted[rank], (rank + 1) as f64 / count as f64))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: Vec<(f64, f64)>) -> Chart {
        Chart {
            name: "c".into(),
            title: "T".into(),
            x: "ms".into(),
            y: "share".into(),
            log_x: true,
            series: vec![Series {
                name: "eevdf".into(),
                points,
            }],
        }
    }

    #[test]
    fn what_is_drawn_is_in_the_file() {
        let one = chart(vec![(1.0, 0.5), (10.0, 1.0)]);
        let svg = one.svg().unwrap();
        for part in ["</svg>", "\nT\n", "eevdf", "polyline", "ms"] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
        let csv = String::from_utf8(one.csv().unwrap()).unwrap();
        assert_eq!(
            csv,
            "series,ms,share\neevdf,1.0000,0.5000\neevdf,10.0000,1.0000\n"
        );
    }

    #[test]
    fn nothing_to_draw_is_an_error_and_odd_values_are_left_out() {
        assert!(chart(vec![]).svg().is_err());
        assert!(chart(vec![(f64::NAN, f64::NAN)]).svg().is_err());
        assert!(chart(vec![(0.0, 0.1), (5.0, 1.0), (5.0, f64::NAN)])
            .svg()
            .is_ok());
    }

    #[test]
    fn the_distribution_ends_at_one_with_the_largest() {
        let values: Vec<f64> = (1..=10_000).map(f64::from).collect();
        let points = cdf(&values);
        assert!(points.len() <= 450, "{}", points.len());
        assert_eq!(points.last(), Some(&(10_000.0, 1.0)));
        assert_eq!(cdf(&[]), []);
        assert_eq!(cdf(&[3.0]), [(3.0, 1.0)]);
    }

    #[test]
    fn axes_have_plain_numbers() {
        let found = [1234.5, 10.0, 2.5, 0.1, 0.0].map(plain);
        assert_eq!(found, ["1234", "10", "2.5", "0.1", "0"]);
    }
}
