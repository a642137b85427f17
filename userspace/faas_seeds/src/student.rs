//! Student's t distribution, by its relation to the regularised incomplete beta function I:
//! `P(|T| > t) = I(v / (v + t^2); v / 2, 1 / 2)` for `v` degrees of freedom (Abramowitz and
//! Stegun, Handbook of Mathematical Functions, 26.7.1 and 26.5.27). The crate `special` has
//! I and its inverse.

use special::Beta;

/// The second argument of the beta function.
const HALF: f64 = 0.5;

/// The probability that |T| exceeds |`t`|, with `freedom` degrees of freedom (1 or more).
///
/// # Example
///
/// ```
/// // Half of all values are beyond the quartiles, -1 and 1 with one degree of freedom.
/// let p = faas_seeds::student::two_sided(1.0, 1);
/// assert!((p - 0.5).abs() < 1e-12);
/// ```
pub fn two_sided(t: f64, freedom: usize) -> f64 {
    let v = freedom as f64;
    let (p, x) = (v / 2.0, v / (v + t * t));
    x.inc_beta(p, HALF, p.ln_beta(HALF))
}

/// The t that |T| exceeds with this probability, with `freedom` degrees of freedom (1 or
/// more). `two_sided` is above 0 and below 1.
pub fn critical(two_sided: f64, freedom: usize) -> f64 {
    let v = freedom as f64;
    let p = v / 2.0;
    let x = two_sided.inv_inc_beta(p, HALF, p.ln_beta(HALF));
    (v * (1.0 - x) / x).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn critical_values_are_those_of_the_published_table() {
        // NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2: upper critical values,
        // columns 0.975 and 0.995.
        for (freedom, at_95, at_99) in [
            (1, 12.706, 63.657),
            (2, 4.303, 9.925),
            (4, 2.776, 4.604),
            (9, 2.262, 3.250),
            (19, 2.093, 2.861),
            (30, 2.042, 2.750),
            (100, 1.984, 2.626),
        ] {
            for (two_sided, want) in [(0.05, at_95), (0.01, at_99)] {
                let found = critical(two_sided, freedom);
                assert!(
                    (found - want).abs() < 0.0006,
                    "{freedom}: {found}, not {want}"
                );
            }
        }
    }

    #[test]
    fn two_degrees_of_freedom_have_a_closed_form() {
        // P(|T| > t) = 1 - t / sqrt(2 + t^2).
        for t in [0.0, 0.1, 1.0, -3.0, 40.0f64] {
            let want = 1.0 - t.abs() / (2.0 + t * t).sqrt();
            assert!((two_sided(t, 2) - want).abs() < 1e-12, "{t}");
        }
    }

    proptest! {
        #[test]
        fn each_is_the_inverse_of_the_other(two in 1e-6..0.999f64, freedom in 1usize..200) {
            let back = two_sided(critical(two, freedom), freedom);
            prop_assert!((back - two).abs() < 1e-9 + 1e-6 * two, "{} {}", two, back);
        }
    }
}
