//! Points of charts: as CSV, and of distributions. [`faas_report`] draws them.

use anyhow::Result;
pub use faas_report::charts::lines::{Chart, Series};

/// The points of `chart` as CSV: `series,x,y`.
///
/// # Errors
/// None in practice.
pub fn csv(chart: &Chart) -> Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(["series", &chart.x, &chart.y])?;
    for series in &chart.series {
        for (x, y) in &series.points {
            writer.write_record([&series.name, &format!("{x:.4}"), &format!("{y:.4}")])?;
        }
    }
    Ok(writer.into_inner()?)
}

/// Points of the cumulative distribution of `sorted` values: at most 400, plus
/// all of the largest values.
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

    #[test]
    fn csv_has_a_row_for_each_point() {
        let chart = Chart {
            name: "c".into(),
            title: "T".into(),
            x: "ms".into(),
            y: "share".into(),
            log_x: true,
            series: vec![Series {
                name: "eevdf".into(),
                points: vec![(1.0, 0.5), (10.0, 1.0)],
            }],
        };
        let text = String::from_utf8(csv(&chart).unwrap()).unwrap();
        assert_eq!(
            text,
            "series,ms,share\neevdf,1.0000,0.5000\neevdf,10.0000,1.0000\n"
        );
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
}
