//! Watches for CPUs that idle while a task waits, with the program of `sfs_waste`. It sees every
//! switch and wake-up, which costs a little: nobody watches unless asked.

use anyhow::Result;
use sfs_waste::{Report, Watch};

use crate::sample::Waste;

/// Memory for events between two looks, in bytes: room for 380,000.
const MEMORY: u32 = 32 << 20;

/// The watch, on or off.
#[derive(Default)]
pub struct Watcher {
    watch: Option<Watch>,
}

impl Watcher {
    /// Begins or ends the watch.
    ///
    /// # Errors
    ///
    /// The kernel refuses the program, which needs root and a kernel with BTF.
    pub fn set(&mut self, on: bool) -> Result<()> {
        if on == self.watch.is_some() {
            return Ok(());
        }
        self.watch = None;
        if on {
            let mut watch = Watch::load(MEMORY)?;
            watch.start()?;
            self.watch = Some(watch);
        }
        Ok(())
    }

    /// Returns the waste since the last look, or since the watch began; None: nobody watches.
    ///
    /// # Errors
    ///
    /// The events cannot be read. The watch has ended.
    pub fn look(&mut self) -> Result<Option<Waste>> {
        let Some(mut watch) = self.watch.take() else {
            return Ok(None);
        };
        let report = watch.stop()?;
        watch.start()?;
        self.watch = Some(watch);
        Ok(Some(of(&report)))
    }
}

fn of(report: &Report) -> Waste {
    let ms = |ns: u64| ns as f64 / 1e6;
    Waste {
        wasted_ms: ms(report.wasted_ns()),
        longest_ms: ms(report.longest_ns()),
        watched_ms: ms(report.watched_ns()),
        lost_events: report.lost,
        longest: report.longest(1).first().map(ToString::to_string),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sfs_waste::Stretch;

    #[test]
    fn a_report_becomes_figures() {
        let stretch = |from_ns, length_ns| Stretch {
            from_ns,
            length_ns,
            thread: 7,
            name: "f".into(),
            cpu: 1,
        };
        let report = Report {
            watched: vec![(0, 500_000_000)],
            stretches: vec![stretch(0, 1_000_000), stretch(5_000_000, 4_000_000)],
            waits: Vec::new(),
            lost: 3,
        };
        let waste = of(&report);
        assert_eq!((waste.wasted_ms, waste.longest_ms), (5.0, 4.0));
        assert_eq!((waste.rate_ms(), waste.lost_events), (10.0, 3));
        assert!(waste.longest.unwrap().starts_with("f (7) waited 4.00 ms"));
        assert_eq!(of(&Report::default()).rate_ms(), 0.0);
    }

    #[test]
    fn nobody_watches_unless_asked() {
        let mut watcher = Watcher::default();
        assert_eq!(watcher.look().unwrap(), None);
        watcher.set(false).unwrap();
        assert_eq!(watcher.look().unwrap(), None);
    }
}
