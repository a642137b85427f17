//! A figure as it depends on what is varied: where two cross, and where one would begin.

/// Where a ranking changes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Flip {
    /// Nowhere between the first and the last point.
    None,
    /// Here, by linear interpolation between two points. The first of the two schedulers is
    /// better up to there, or from there on.
    At {
        /// The place.
        at: f64,
        /// Whether the first one is better before it.
        first_before: bool,
    },
}

/// The places where the ranking of two figures changes, both at the same `points`, in rising
/// order. Smaller is better; equal figures change nothing.
pub fn flips(points: &[f64], first: &[f64], second: &[f64]) -> Vec<Flip> {
    let gaps = first.iter().zip(second).map(|(one, other)| one - other);
    let known = points.iter().copied().zip(gaps);
    let unequal: Vec<(f64, f64)> = known.filter(|(_, gap)| *gap != 0.0).collect();
    let mut found = Vec::new();
    for pair in unequal.windows(2) {
        let [(from, before), (to, after)] = [pair[0], pair[1]];
        if (before < 0.0) != (after < 0.0) {
            let share = before / (before - after);
            found.push(Flip::At {
                at: from + share * (to - from),
                first_before: before < 0.0,
            });
        }
    }
    match found.is_empty() {
        true => vec![Flip::None],
        false => found,
    }
}

/// The value at 0 of the straight line closest to these points by least squares; `None` with
/// fewer than two different places.
pub fn at_zero(points: &[(f64, f64)]) -> Option<f64> {
    let count = points.len() as f64;
    let mean = |values: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(values).sum::<f64>() / count;
    let (x, y) = (mean(&|point| point.0), mean(&|point| point.1));
    let spread: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    let both: f64 = points
        .iter()
        .map(|point| (point.0 - x) * (point.1 - y))
        .sum();
    (spread > 0.0).then(|| y - both / spread * x)
}

#[cfg(test)]
mod tests {
    use super::*;

    const POINTS: [f64; 3] = [0.0, 100.0, 200.0];

    #[test]
    fn a_flip_is_where_the_lines_cross() {
        let found = flips(&POINTS, &[1.0, 2.0, 5.0], &[2.0, 3.0, 4.0]);
        let want = Flip::At {
            at: 150.0,
            first_before: true,
        };
        assert_eq!(found, [want]);
        assert_eq!(
            flips(&POINTS, &[1.0, 1.0, 1.0], &[2.0, 1.5, 1.1]),
            [Flip::None]
        );
    }

    #[test]
    fn each_crossing_counts_and_equality_alone_does_not() {
        let found = flips(&POINTS, &[3.0, 1.0, 3.0], &[2.0, 2.0, 2.0]);
        let places: Vec<(f64, bool)> = found
            .iter()
            .map(|flip| match flip {
                Flip::At { at, first_before } => (*at, *first_before),
                Flip::None => (f64::NAN, false),
            })
            .collect();
        assert_eq!(places, [(50.0, false), (150.0, true)]);
        assert_eq!(
            flips(&POINTS, &[1.0, 2.0, 1.0], &[2.0, 2.0, 2.0]),
            [Flip::None]
        );
        // From 0 to 200 the gap goes from -1 to 1.
        let found = flips(&POINTS, &[1.0, 2.0, 3.0], &[2.0, 2.0, 2.0]);
        let want = Flip::At {
            at: 100.0,
            first_before: true,
        };
        assert_eq!(found, [want]);
    }

    #[test]
    fn lines_are_drawn_to_zero() {
        let line = [(1.0, 5.0), (2.0, 7.0), (4.0, 11.0)];
        let found = at_zero(&line).unwrap();
        assert!((found - 3.0).abs() < 1e-9, "{found}");
        assert_eq!(at_zero(&line[..1]), None);
        assert_eq!(at_zero(&[]), None);
    }
}
