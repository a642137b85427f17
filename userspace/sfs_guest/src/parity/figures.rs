//! Figures in the output of programs. A figure is returned with its unit, as in "12.5 us".

/// Returns the field `index`, from 0, of the first line whose first field is `first`.
pub fn field<'a>(text: &'a str, first: &str, index: usize) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let mut fields = line.split_whitespace();
        let line_is_it = fields.clone().next() == Some(first);
        fields.nth(index).filter(|_| line_is_it)
    })
}

/// Returns the same field as an operation rate.
pub fn rate(text: &str, first: &str, index: usize) -> Option<String> {
    field(text, first, index).map(|value| format!("{value} ops/s"))
}

/// Returns seconds as milliseconds.
pub fn milliseconds(seconds: &str) -> Option<String> {
    let seconds: f64 = seconds.parse().ok()?;
    Some(format!("{:.3} ms", seconds * 1000.0))
}

/// Returns a time as wrk writes it (45.6us, 1.23ms, 1.2s) in microseconds.
pub fn microseconds(time: &str) -> Option<String> {
    let number = time.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let factor = match &time[number.len()..] {
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        _ => return None,
    };
    let number: f64 = number.parse().ok()?;
    Some(format!("{} us", rounded(number * factor)))
}

/// Rounds to six digits.
pub fn rounded(number: f64) -> f64 {
    format!("{number:.5e}").parse().unwrap_or(number)
}

/// Returns the number on the first line that has nothing but a number, of seconds.
pub fn only_seconds(text: &str) -> Option<String> {
    text.lines().find_map(|line| milliseconds(line.trim()))
}

/// Returns what comes before the last field that begins with `unit`.
pub fn last_before<'a>(text: &'a str, unit: &str) -> Option<&'a str> {
    let lines = text.lines().rev().map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let place = fields.iter().rposition(|field| field.starts_with(unit))?;
        fields.get(place.checked_sub(1)?).copied()
    });
    lines.flatten().next()
}

/// Returns the 99th percentile of numbers (nearest rank); none if there are none.
pub fn p99(mut numbers: Vec<u64>) -> Option<u64> {
    numbers.sort_unstable();
    let rank = (numbers.len() * 99).div_ceil(100);
    numbers.get(rank.checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_the_first() {
        let text = "a b\nmean 10.1 p99 20.5 max 30\nmean 1 p99 2\n";
        assert_eq!(field(text, "mean", 3), Some("20.5"));
        assert_eq!(field(text, "p99", 0), None);
        assert_eq!(rate(text, "a", 1).unwrap(), "b ops/s");
        assert_eq!(field(text, "a", 2), None);
    }

    #[test]
    fn times_are_converted() {
        assert_eq!(microseconds("1.23ms").unwrap(), "1230 us");
        assert_eq!(microseconds("45.60us").unwrap(), "45.6 us");
        assert_eq!(microseconds("1.2s").unwrap(), "1200000 us");
        assert_eq!(microseconds("7h"), None);
        assert_eq!(milliseconds("0.1234567").unwrap(), "123.457 ms");
        assert_eq!(only_seconds("# perf\n 0.052\n").unwrap(), "52.000 ms");
        assert_eq!(only_seconds("# perf\n"), None);
        assert_eq!(rounded(2.3 * 1000.0), 2300.0);
        assert_eq!(rounded(1234.5678), 1234.57);
    }

    #[test]
    fn the_last_number_before_a_unit() {
        let text = "[thread 0] 100 operations/sec\nAveraged 250 operations/sec (+- 1 %)\nend\n";
        assert_eq!(last_before(text, "operations"), Some("250"));
        let text = "Wokeup 4 of 4 threads in 0.1234 ms (+-1.2%)\n";
        assert_eq!(last_before(text, "ms"), Some("0.1234"));
        assert_eq!(last_before("ms alone", "ms"), None);
    }

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        assert_eq!(p99((1..=100).rev().collect()), Some(99));
        assert_eq!(p99((1..=101).collect()), Some(100));
        assert_eq!(p99(vec![7]), Some(7));
        assert_eq!(p99(Vec::new()), None);
    }
}
