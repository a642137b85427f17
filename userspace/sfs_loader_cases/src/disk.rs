//! Writes to a disk, and the kernel threads that they need. These cases run in a guest of
//! their own.

use std::fs::{self, File};
use std::io::Write;
use std::time::Duration;

use anyhow::{bail, ensure, Context, Result};

use sfs_testbed::case::{Bench, Case};
use sfs_testbed::clock::{ms, now, since, sleep};
use sfs_testbed::process::{as_real_time, Process};
use sfs_testbed::surroundings::Ext4;

/// The cases of this file, in the order in which they run.
pub const CASES: &[Case] = &[Case {
    name: "disk_is_written_under_saturated_filter",
    about: "fsync by the journal's thread and write-back by a kernel worker keep their latency",
    run: disk_is_written_under_saturated_filter,
}];

fn disk_is_written_under_saturated_filter(bench: &Bench) -> Result<()> {
    // If no CPU is busy, seconds of virtual time pass until the disk answers.
    let busy = Process::hog()?;
    let disk = Ext4::mount()?;
    let scheduler = bench.load_sfs("--slice-us 30000 --no-overload")?;
    let chains = bench.saturate_filter()?;
    sleep(ms(200));
    drop(busy);
    // The caller is a real-time process, so that only the kernel's threads are measured. The time
    // that the disk takes does not count: it is real time, and up to a second on a busy host.
    let (synced, written) = as_real_time(|| Ok((sync_often(&disk)?, leave_dirty(&disk)?)))?;
    bench.at_most("the longest fsync of 20", synced, ms(200))?;
    bench.at_most("until all is written back", written, ms(1500))?;
    drop(chains);
    scheduler.finish()
}

/// Measures time without the time for which the disk has requests.
struct Stopwatch {
    started: Duration,
    disk_busy: Duration,
}

impl Stopwatch {
    fn start() -> Result<Self> {
        Ok(Self {
            started: now(),
            disk_busy: disk_busy()?,
        })
    }

    fn read(&self) -> Result<Duration> {
        let busy = disk_busy()? - self.disk_busy;
        Ok(since(self.started).saturating_sub(busy))
    }
}

/// Returns for how long the disk has had requests since boot, in ticks
/// (Documentation/block/stat.rst, `io_ticks`).
fn disk_busy() -> Result<Duration> {
    const STAT: &str = "/sys/block/nvme0n1/stat";
    let text = fs::read_to_string(STAT).with_context(|| format!("cannot read {STAT}"))?;
    match text.split_whitespace().nth(9).map(str::parse) {
        Some(Ok(millis)) => Ok(Duration::from_millis(millis)),
        _ => bail!("{STAT} has no io_ticks: {text}"),
    }
}

/// Writes and syncs 20 times. Returns the time of the longest fsync, without the disk's.
fn sync_often(disk: &Ext4) -> Result<Duration> {
    let mut file = File::create(disk.file("synced"))?;
    let mut longest = Duration::ZERO;
    for _ in 0..20 {
        file.write_all(&[1; 64 * 1024])?;
        let stopwatch = Stopwatch::start()?;
        file.sync_all()?;
        longest = longest.max(stopwatch.read()?);
        sleep(ms(7));
    }
    Ok(longest)
}

/// Writes, and waits until the kernel has written back. Returns the time this
/// took, without the disk's.
fn leave_dirty(disk: &Ext4) -> Result<Duration> {
    // Every 200 ms the kernel writes back pages of that age; the defaults are 5 and 30 s.
    for file in ["dirty_writeback_centisecs", "dirty_expire_centisecs"] {
        fs::write(format!("/proc/sys/vm/{file}"), "20")?;
    }
    let mut file = File::create(disk.file("dirty"))?;
    // Some of it may already be on the disk, as the writes take a while on the
    // emulator.
    for _ in 0..5 {
        file.write_all(&vec![2; 4 << 20])?;
        if dirty_kib()? >= 1024 {
            break;
        }
    }
    let (start, stopwatch) = (now(), Stopwatch::start()?);
    ensure!(dirty_kib()? >= 1024, "no page is dirty");
    while dirty_kib()? > 64 {
        ensure!(since(start) < ms(20_000), "pages stay dirty");
        sleep(ms(2));
    }
    stopwatch.read()
}

/// Returns the amount that is dirty or being written back, in KiB.
fn dirty_kib() -> Result<u64> {
    let text = fs::read_to_string("/proc/meminfo")?;
    let number = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    let all = number("Dirty:").zip(number("Writeback:"));
    let (dirty, writing) = all.context("/proc/meminfo has no Dirty and Writeback")?;
    Ok(dirty + writing)
}
