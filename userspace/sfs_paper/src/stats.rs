//! Arithmetic on samples.

/// The mean; 0 of nothing.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The standard deviation of the sample itself.
pub fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / values.len().max(1) as f64).sqrt()
}

/// Coefficient of variation: deviation / mean.
pub fn variation(values: &[f64]) -> f64 {
    deviation(values) / mean(values)
}

/// In order.
pub fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// The quantile at `share` (0 to 1) of values in order, by nearest rank; NaN of
/// nothing.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    let index = rank.clamp(1, sorted.len().max(1)) - 1;
    sorted.get(index).copied().unwrap_or(f64::NAN)
}

/// The share of values that `holds` holds of; 0 of nothing.
pub fn share(values: &[f64], holds: impl Fn(f64) -> bool) -> f64 {
    let count = values.iter().filter(|value| holds(**value)).count();
    count as f64 / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_by_nearest_rank() {
        let four = [1.0, 2.0, 3.0, 4.0];
        let found = [0.0, 0.25, 0.26, 0.5, 1.0].map(|share| quantile(&four, share));
        assert_eq!(found, [1.0, 1.0, 2.0, 2.0, 4.0]);
        assert!(quantile(&[], 0.5).is_nan());
    }

    #[test]
    fn moments_by_hand() {
        let two = [1.0, 3.0];
        assert_eq!(
            (mean(&two), deviation(&two), variation(&two)),
            (2.0, 1.0, 0.5)
        );
        assert_eq!(share(&two, |value| value > 1.0), 0.5);
        assert_eq!((mean(&[]), share(&[], |_| true)), (0.0, 0.0));
    }
}
