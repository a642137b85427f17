//! Formats of numbers in cells.

/// Shown in place of a missing number.
pub const NONE: &str = "-";

/// A number formatted by `show`, if present.
pub fn shown(value: Option<f64>, show: fn(f64) -> String) -> String {
    value.map_or(NONE.to_string(), show)
}

/// A number with about four digits: no decimals from 1,000 on, thousands
/// separated from 100,000 on.
pub fn compact(value: f64) -> String {
    match value.abs() {
        large if large >= 99_999.5 => thousands(value.round()),
        large if large >= 999.95 => format!("{value:.0}"),
        large if large >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// A whole number with thin spaces between thousands.
fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push('\u{2009}');
        }
        text.push(digit);
    }
    text
}

/// A share in per cent.
pub fn per_cent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_about_four_digits() {
        assert_eq!(compact(0.126), "0.13");
        assert_eq!(compact(9.999), "10.0");
        assert_eq!(compact(612.04), "612.0");
        assert_eq!(compact(1742.4), "1742");
        assert_eq!(compact(1_234_567.0), "1\u{2009}234\u{2009}567");
    }
}
