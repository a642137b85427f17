//! Parsers of numbers in option values.

use std::time::Duration;

pub(super) fn parse_overload_factor(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if (0.1..=1000.0).contains(&factor) => Ok(factor),
        _ => Err("want a number from 0.1 to 1000".to_string()),
    }
}

pub(super) fn parse_ageing(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if (1.0..=100.0).contains(&factor) => Ok(factor),
        _ => Err("want a number from 1 to 100".to_string()),
    }
}

pub(super) fn parse_interval(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.01..=86_400.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("want seconds, from 0.01 to 86400".to_string()),
    }
}
