//! The machine's own figures: `/proc/stat`, `/proc/loadavg`, `/proc/pressure/cpu`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::sample::Machine;

/// Reads them; shares are of the time since the previous look.
pub struct MachineReader {
    proc: PathBuf,
    /// Busy and total time of all CPUs at the last look, in ticks.
    times: Option<(u64, u64)>,
    /// The total of the pressure, in µs, and when it was read.
    pressure: Option<(u64, Instant)>,
}

impl MachineReader {
    /// Reads the files below `proc`.
    pub fn new(proc: &Path) -> Self {
        Self {
            proc: proc.to_owned(),
            times: None,
            pressure: None,
        }
    }

    /// Looks once. In the first look the busy share is that since boot, and there is no
    /// pressure.
    pub fn look(&mut self, now: Instant) -> Machine {
        let read = |name: &str| fs::read_to_string(self.proc.join(name)).unwrap_or_default();
        let stat = read("stat");
        let times = cpu_times(&stat);
        let (load, runnable) = loads(&read("loadavg")).unzip();
        let pressure = some_total_us(&read("pressure/cpu")).map(|us| (us, now));
        let machine = Machine {
            cpus: cpus(&stat),
            busy_share: times.and_then(|now| busy_share(self.times.unwrap_or((0, 0)), now)),
            load,
            runnable,
            pressure_share: pressure_share(self.pressure, pressure),
        };
        (self.times, self.pressure) = (times, pressure);
        machine
    }
}

/// Returns the busy and the total time in the first line of `/proc/stat`.
fn cpu_times(stat: &str) -> Option<(u64, u64)> {
    let fields = stat.lines().next()?.strip_prefix("cpu ")?;
    // user nice system idle iowait irq softirq steal; guests are part of user and nice.
    let ticks: Vec<u64> = fields
        .split_whitespace()
        .take(8)
        .map(|field| field.parse().ok())
        .collect::<Option<_>>()?;
    let total: u64 = ticks.iter().sum();
    let idle = ticks.get(3)? + ticks.get(4).unwrap_or(&0);
    Some((total - idle, total))
}

fn busy_share(before: (u64, u64), now: (u64, u64)) -> Option<f64> {
    let total = now.1.checked_sub(before.1).filter(|total| *total > 0)?;
    // The kernel's idle time may go back by a tick.
    let busy = now.0.saturating_sub(before.0).min(total);
    Some(busy as f64 / total as f64)
}

fn cpus(stat: &str) -> u64 {
    let is_cpu = |line: &&str| {
        line.strip_prefix("cpu")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    stat.lines().filter(is_cpu).count() as u64
}

/// Returns the load averages and the number of runnable threads in `/proc/loadavg`.
fn loads(text: &str) -> Option<([f64; 3], u64)> {
    let mut words = text.split_whitespace();
    let mut next = || words.next()?.parse::<f64>().ok();
    let load = [next()?, next()?, next()?];
    let runnable = words.next()?.split('/').next()?.parse().ok()?;
    Some((load, runnable))
}

/// Returns the total in the first line of a file of pressure, in µs.
pub(crate) fn some_total_us(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    line.split("total=").nth(1)?.trim().parse().ok()
}

/// Returns the share of the time between two reads in which a task waited.
pub(crate) fn pressure_share(
    before: Option<(u64, Instant)>,
    now: Option<(u64, Instant)>,
) -> Option<f64> {
    let ((before_us, since), (now_us, at)) = (before?, now?);
    let time_us = at.duration_since(since).as_micros();
    let waited_us = now_us.checked_sub(before_us)?;
    (time_us > 0).then(|| (waited_us as f64 / time_us as f64).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_files_of_proc_are_understood() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        fs::create_dir(folder.path().join("pressure")).unwrap();
        put(
            "stat",
            "cpu  10 0 10 70 10 0 0 0 0 0\ncpu0 5 0\ncpu1 5 0\nintr 7\n",
        );
        put("loadavg", "0.80 0.17 0.05 11/94 185\n");
        let some = |total| {
            format!("some avg10=1.00 avg60=0.00 avg300=0.00 total={total}\nfull avg10=0 total=9\n")
        };
        put("pressure/cpu", &some(1_000_000));
        let mut reader = MachineReader::new(folder.path());
        let start = Instant::now();
        let first = reader.look(start);
        assert_eq!(
            first,
            Machine {
                cpus: 2,
                busy_share: Some(0.2),
                load: Some([0.8, 0.17, 0.05]),
                runnable: Some(11),
                pressure_share: None,
            }
        );
        put("stat", "cpu  85 0 10 90 15 0 0 0 0 0\n");
        put("pressure/cpu", &some(1_500_000));
        let second = reader.look(start + Duration::from_secs(2));
        assert_eq!(second.busy_share, Some(0.75));
        assert_eq!(second.pressure_share, Some(0.25));
    }

    #[test]
    fn without_files_nothing_is_known() {
        let mut reader = MachineReader::new(Path::new("/nonexistent"));
        assert_eq!(reader.look(Instant::now()), Machine::default());
        for odd in ["", "cpu", "cpu ", "cpu  a b", "cpu  1 2"] {
            assert_eq!(cpu_times(odd), None, "{odd:?}");
        }
        for odd in ["", "1 2", "1 2 3", "1 2 3 x/4"] {
            assert_eq!(loads(odd), None, "{odd:?}");
        }
        assert_eq!(some_total_us("some avg10=0"), None);
    }

    #[test]
    fn times_that_go_back_are_no_share() {
        assert_eq!(busy_share((5, 10), (4, 12)), Some(0.0));
        assert_eq!(busy_share((5, 10), (4, 10)), None);
        assert_eq!(busy_share((5, 10), (4, 9)), None);
        let now = Instant::now();
        let later = now + Duration::from_secs(1);
        assert_eq!(pressure_share(Some((7, now)), Some((5, later))), None);
        assert_eq!(pressure_share(Some((7, now)), Some((8, now))), None);
    }
}
