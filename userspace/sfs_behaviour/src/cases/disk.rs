//! What writes to a disk, and the kernel threads that it takes. These cases run in a guest
//! of their own.

use std::fs::{self, File};
use std::io::Write;
use std::time::Duration;

use anyhow::{ensure, Context, Result};

use crate::case::{since, Bench, Case};
use crate::clock::{ms, now, sleep};
use crate::process::{as_real_time, Process};
use crate::surroundings::Ext4;

pub const CASES: &[Case] = &[Case {
    name: "disk_is_written_under_saturated_filter",
    about: "fsync through the journal's thread, and what is dirty through a kernel worker",
    run: disk_is_written_under_saturated_filter,
}];

fn disk_is_written_under_saturated_filter(bench: &Bench) -> Result<()> {
    // Where no CPU is busy, seconds pass in virtual time until the disk has answered.
    let busy = Process::hog()?;
    let disk = Ext4::mount()?;
    let scheduler = bench.load("--slice-us 30000 --no-overload")?;
    let chains = bench.saturate_filter()?;
    sleep(ms(200));
    drop(busy);
    // A caller of its own class, so that only the kernel's threads are measured.
    let (synced, written) = as_real_time(|| Ok((sync_often(&disk)?, leave_dirty(&disk)?)))?;
    bench.at_most("the longest fsync of 20", synced, ms(200))?;
    bench.at_most("until nothing is dirty", written, ms(1500))?;
    drop(chains);
    scheduler.finish()
}

/// Writes and syncs again and again. Returns the longest time that it took.
fn sync_often(disk: &Ext4) -> Result<Duration> {
    let mut file = File::create(disk.file("synced"))?;
    let mut longest = Duration::ZERO;
    for _ in 0..20 {
        file.write_all(&[1; 64 * 1024])?;
        let start = now();
        file.sync_all()?;
        longest = longest.max(since(start));
        sleep(ms(7));
    }
    Ok(longest)
}

/// Writes, and leaves it to the kernel to bring that to the disk. Returns when it has.
fn leave_dirty(disk: &Ext4) -> Result<Duration> {
    // It looks every 200 ms for what is as old; the default is 5 and 30 s.
    for file in ["dirty_writeback_centisecs", "dirty_expire_centisecs"] {
        fs::write(format!("/proc/sys/vm/{file}"), "20")?;
    }
    let mut file = File::create(disk.file("dirty"))?;
    // Some of it may have been written already: it takes the emulator a while.
    for _ in 0..5 {
        file.write_all(&vec![2; 4 << 20])?;
        if dirty_kib()? >= 1024 {
            break;
        }
    }
    let start = now();
    ensure!(dirty_kib()? >= 1024, "nothing is dirty");
    while dirty_kib()? > 64 {
        ensure!(since(start) < ms(20_000), "it stays dirty");
        sleep(ms(2));
    }
    Ok(since(start))
}

/// Returns how much is to be written, or being written.
fn dirty_kib() -> Result<u64> {
    let text = fs::read_to_string("/proc/meminfo")?;
    let number = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    let all = number("Dirty:").zip(number("Writeback:"));
    let (dirty, writing) = all.context("/proc/meminfo does not tell what is dirty")?;
    Ok(dirty + writing)
}
