//! Request lists of the SFS artefact: `name script N arrival id`, separated by
//! white space, arrival in milliseconds.
//!
//! The artefact sets the load by a factor on the arrivals (9 in its
//! experiments). A request computes fib(N): its service time comes from
//! [`crate::fib`], and N identifies its function, since all names differ.

use super::Converted;
use crate::fib;
use crate::service_us;
use faas_data::input::{number, shorten, MAX_US};
use faas_data::trace::Invocation;

/// Converts the text of a request list; arrivals are multiplied by
/// `multiplier`, service times by `scale` (both more than 0).
pub fn convert(text: &str, multiplier: f64, scale: f64) -> Converted {
    let mut converted = Converted::default();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        match request(line, multiplier, scale) {
            Ok(invocation) => converted.invocations.push(invocation),
            Err(reason) => converted.skipped.push((index + 1, reason)),
        }
    }
    converted.sort();
    converted
}

fn request(line: &str, multiplier: f64, scale: f64) -> Result<Invocation, String> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [_name, _script, n, arrival, _id] = fields[..] else {
        return Err(format!("want 5 fields, found {}", fields.len()));
    };
    let n = number("N", n, u64::from(u32::MAX))? as u32;
    let service_ms =
        fib::duration_ms(n).ok_or_else(|| format!("no duration is known for fib({n})"))?;
    let arrival_ms = number("arrival", arrival, MAX_US)?;
    let arrival_us = (arrival_ms as f64 * 1e3 * multiplier).round();
    if arrival_us > MAX_US as f64 {
        let arrival = shorten(arrival, 40);
        return Err(format!("arrival `{arrival}` is too late"));
    }
    Ok(Invocation::cpu(
        arrival_us as u64,
        format!("fib{n}"),
        service_us(service_ms as f64 * 1e3 * scale),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::{shared, NOT_HERE};
    use super::*;
    use faas_data::trace::offered_load;
    use sfs_skip::skip;

    #[test]
    fn requests_become_invocations() {
        let text = "fib1 fib.py 27 5 1\nfib2 fib.py 21 7 2\n";
        let converted = convert(text, 9.0, 1.0);
        let want = vec![
            Invocation::cpu(45_000, "fib27", 60_000),
            Invocation::cpu(63_000, "fib21", 14_000),
        ];
        assert_eq!(converted.invocations, want);
        assert_eq!(converted.skipped, []);
    }

    #[test]
    fn unreadable_lines_are_counted() {
        let text = "fib1 fib.py 27 5 1\nhello\n\nf s 99 7 2\nf s 20 -7 2\nf s 20 1 3\n";
        let converted = convert(text, 1.0, 1.0);
        assert_eq!(converted.invocations.len(), 2);
        assert_eq!(converted.out_of_order, 1);
        assert_eq!(converted.invocations[0].arrival_us, 1000);
        let want = [
            (2, "want 5 fields, found 1".to_string()),
            (4, "no duration is known for fib(99)".to_string()),
            (5, "arrival `-7` is not a whole number".to_string()),
        ];
        assert_eq!(converted.skipped, want);
    }

    #[test]
    fn the_artefacts_list_has_the_load_that_it_is_said_to_have() {
        let Some(path) = shared("traces/sfs/test1.txt") else {
            skip!(NOT_HERE);
        };
        let text = std::fs::read_to_string(path).unwrap();
        let converted = convert(&text, 9.0, 1.0);
        assert_eq!(converted.invocations.len(), 10_083);
        assert_eq!((converted.skipped.len(), converted.out_of_order), (0, 0));
        let load = |cpus| offered_load(&converted.invocations, cpus).unwrap();
        assert!((load(16) - 0.87).abs() < 0.01, "{}", load(16));
        assert!((load(12) - 1.155).abs() < 0.01, "{}", load(12));
        let shares = class_shares(&converted.invocations);
        for (found, class) in shares.iter().zip(crate::table1::ARTEFACT) {
            let want = 100.0 * class.share / 94.5;
            assert!((found - want).abs() < 0.2, "{found} for {want}");
        }
    }

    /// Shares of the classes of `table1-artefact` in per cent.
    fn class_shares(invocations: &[Invocation]) -> Vec<f64> {
        let share = |class: &crate::table1::Class| {
            let inside = |one: &&Invocation| {
                let ms = one.service_us() as f64 / 1e3;
                (class.low_ms..=class.high_ms).contains(&ms)
            };
            let count = invocations.iter().filter(inside).count();
            100.0 * count as f64 / invocations.len() as f64
        };
        crate::table1::ARTEFACT.iter().map(share).collect()
    }
}
