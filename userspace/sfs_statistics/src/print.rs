//! Printing of statistics.

use std::io::Write;

use anyhow::Result;
use sfs_bpf::NAME;

use super::Metrics;

impl Metrics {
    /// Prints them on one line, with a second line for hints.
    ///
    /// # Errors
    ///
    /// Writing fails.
    pub(super) fn print<W: Write>(&self, out: &mut W) -> Result<()> {
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
