//! Printing of statistics.

use std::io::Write;

use anyhow::Result;
use sfs_bpf::NAME;

use super::{Form, Metrics};

impl Metrics {
    /// Prints them on one line; for people, with a second line for hints, and lines broken where
    /// they are longer than the terminal is wide.
    ///
    /// # Errors
    ///
    /// Writing fails.
    pub(super) fn print<W: Write>(&self, out: &mut W, form: Form) -> Result<()> {
        let Form::Text { columns } = form else {
            let line = serde_json::to_string(self)?;
            return Ok(writeln!(out, "{line}")?);
        };
        let mut text = Vec::new();
        self.print_lines(&mut text)?;
        for line in String::from_utf8_lossy(&text).lines() {
            writeln!(out, "{}", broken(line, columns))?;
        }
        Ok(())
    }

    fn print_lines(&self, out: &mut impl Write) -> Result<()> {
        writeln!(
            out,
            "[{}] {:9} S {:>7} us | arrivals {:>6} done {:>6} in credit {:>6} demoted {:>5} | \
             delay mean {:>8.0} max {:>8} us | preempted {:>5} i/o {:>5} due {:>4} | overloads {} moved {} relieved {} | policy {}",
            NAME,
            if self.mode == 0 { "filter" } else { "fair-only" },
            self.slice_us,
            self.arrivals,
            self.completions,
            self.completions_in_credit,
            self.demotions,
            self.queue_delay_mean_us,
            self.queue_delay_max_us,
            self.preemptions,
            self.io_returns,
            self.fair_turns_due,
            self.overloads,
            self.moved,
            self.relieved,
            sfs_text::word(&self.policy),
        )?;
        self.print_hints(out)
    }

    /// Prints nothing on machines without a platform that sends hints.
    fn print_hints<W: Write>(&self, out: &mut W) -> Result<()> {
        let lost = self.hints_malformed + self.hints_dropped + self.hints_denied;
        if self.hints + lost + self.hints_limited == 0 {
            return Ok(());
        }
        writeln!(
            out,
            "[{}] hints     {:>9} | applied {:>6} stale {:>6} foreign {:>6} dead {:>6} failed {:>6} | malformed {:>6} dropped {:>6} denied {:>6} limited {:>6}",
            NAME,
            self.hints,
            self.hints_applied,
            self.hints_stale,
            self.hints_foreign,
            self.hints_dead,
            self.hints_failed,
            self.hints_malformed,
            self.hints_dropped,
            self.hints_denied,
            self.hints_limited,
        )?;
        Ok(())
    }
}

/// Returns a line broken at its bars into lines of at most `columns`, where that is possible.
fn broken(line: &str, columns: usize) -> String {
    const BAR: &str = " | ";
    const INDENT: &str = "    ";
    let mut text = String::new();
    let mut length = 0;
    for part in line.split(BAR) {
        let wide = part.chars().count();
        if text.is_empty() {
            length = wide;
        } else if length + BAR.len() + wide <= columns {
            text += BAR;
            length += BAR.len() + wide;
        } else {
            text += "\n";
            text += INDENT;
            length = INDENT.len() + wide;
        }
        text += part;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_one_line_with_all_statistics() {
        let metrics = Metrics {
            arrivals: 7,
            policy: "a\nb".into(),
            hints: 5,
            ..Metrics::default()
        };
        let mut out = Vec::new();
        metrics.print(&mut out, Form::Json).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches('\n').count(), 1, "{text}");
        assert_eq!(serde_json::from_str::<Metrics>(&text).unwrap(), metrics);
    }

    #[test]
    fn lines_keep_to_the_width() {
        let metrics = Metrics {
            hints: 5,
            ..Metrics::default()
        };
        let printed = |columns| {
            let mut out = Vec::new();
            metrics.print(&mut out, Form::Text { columns }).unwrap();
            String::from_utf8(out).unwrap()
        };
        let whole = printed(usize::MAX);
        assert_eq!(whole.lines().count(), 2, "{whole}");
        for columns in [80, 100] {
            let text = printed(columns);
            assert!(
                text.lines().all(|line| line.chars().count() <= columns),
                "{text}"
            );
            assert_eq!(text.replace("\n    ", " | "), whole);
        }
    }
}
