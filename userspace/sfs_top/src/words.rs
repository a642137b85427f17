//! Numbers as short words, for columns.

/// What stands where a value is not known.
pub const UNKNOWN: &str = "-";

/// Returns a time as at most 7 characters, such as `35 us`, `1.2 ms`, `298 ms`, `1.05 s`.
pub fn time_us(us: f64) -> String {
    match us {
        us if us < 999.5 => format!("{us:.0} us"),
        us if us < 99_950.0 => format!("{:.1} ms", us / 1e3),
        us if us < 999_500.0 => format!("{:.0} ms", us / 1e3),
        us if us < 9_995_000.0 => format!("{:.2} s", us / 1e6),
        us if us < 999_500_000.0 => format!("{:.1} s", us / 1e6),
        us => format!("{:.0} s", us / 1e6),
    }
}

/// Returns a number of ms with three digits, without its unit.
pub fn ms(ms: f64) -> String {
    match ms {
        ms if ms < 9.995 => format!("{ms:.2}"),
        ms if ms < 99.95 => format!("{ms:.1}"),
        ms => count(ms),
    }
}

/// Returns a number as at most 6 characters: `0.4`, `12`, `9999`, `12.3k`, `4.5M`.
pub fn count(number: f64) -> String {
    match number {
        n if n == n.trunc() && n < 10_000.0 => format!("{n:.0}"),
        n if n < 9.95 => format!("{n:.1}"),
        n if n < 9_999.5 => format!("{n:.0}"),
        n if n < 999_950.0 => format!("{:.1}k", n / 1e3),
        n if n < 999_950_000.0 => format!("{:.1}M", n / 1e6),
        n => format!("{:.1}G", n / 1e9),
    }
}

/// Returns a share (0 to 1) in percent.
pub fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

/// Returns a length of time as `1:02:03`, or `4d 1:02:03`.
pub fn clock(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let time = format!("{}:{:02}:{:02}", rest / 3600, rest % 3600 / 60, rest % 60);
    match days {
        0 => time,
        days => format!("{days}d {time}"),
    }
}

/// Returns `text` in at most `room` characters. Of a path the end is kept, which tells it from
/// others.
pub fn cut(text: &str, room: usize) -> String {
    let length = text.chars().count();
    if length <= room {
        return text.to_owned();
    }
    let Some(rest) = room.checked_sub(1) else {
        return String::new();
    };
    if text.contains('/') {
        let tail: String = text.chars().skip(length - rest).collect();
        return format!("<{tail}");
    }
    let head: String = text.chars().take(rest).collect();
    format!("{head}>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (us, text) in [
            (0.0, "0 us"),
            (999.0, "999 us"),
            (1_234.0, "1.2 ms"),
            (298_269.0, "298 ms"),
            (1_048_576.0, "1.05 s"),
            (30_000_000.0, "30.0 s"),
            (4e9, "4000 s"),
        ] {
            assert_eq!(time_us(us), text);
        }
        for (number, text) in [
            (0.0, "0"),
            (0.44, "0.4"),
            (12.6, "13"),
            (9_999.0, "9999"),
            (12_345.0, "12.3k"),
            (4_500_000.0, "4.5M"),
            (2e9, "2.0G"),
        ] {
            assert_eq!(count(number), text);
        }
        assert_eq!(
            (ms(0.5), ms(12.34), ms(1234.0)),
            ("0.50".into(), "12.3".into(), "1234".into())
        );
        assert_eq!(percent(0.5), "50.0%");
        assert_eq!(
            (clock(59), clock(90_061)),
            ("0:00:59".into(), "1d 1:01:01".into())
        );
    }

    #[test]
    fn long_names_are_cut_where_they_tell_least() {
        assert_eq!(cut("resize", 6), "resize");
        assert_eq!(cut("resize", 5), "resi>");
        assert_eq!(cut("functions/resize-7", 9), "<resize-7");
        assert_eq!((cut("ab", 1), cut("ab", 0)), (">".into(), String::new()));
    }
}
