//! CPU time of each program of the scheduler while a crowd takes turns.

use std::process::Command;

use anyhow::Result;
use sfs_testbed::clock::{ms, sleep};

use super::load;
use super::machine::{leave, leave_output, runnable, Crowd};

/// With more CPUs, which share one stream of instructions, a crowd that keeps all of them busy
/// comes to no end.
const BUSY_CPUS: usize = 8;

/// Invocations of 1 ms.
const INVOCATIONS: [&str; 4] = ["--end", "fork", "--burst-us", "1000"];

/// A slice that lasts longer than a measurement: all tasks stay in FILTER.
const LONG_SLICE: &str = "--slice-us 60000000";

/// Threads from which the learned policy learns.
const REHEARSALS: &str = "300";

/// Two invocations at a time, and four for each CPU.
pub fn by_cpus(cpus: usize, options: &str) -> Result<()> {
    let loader = load(options)?;
    measure(&format!("few.{cpus}"), 2, &INVOCATIONS)?;
    if cpus <= BUSY_CPUS {
        measure(&format!("cpus.{cpus}"), cpus * 4, &INVOCATIONS)?;
    }
    loader.unload()
}

/// Tasks that wait in FILTER, in FAIR, and in rank order.
pub fn by_queue(cpus: usize, options: &str, lengths: &[usize]) -> Result<()> {
    let [sfs, learned] = ["sfs", "learned"].map(|policy| format!("{LONG_SLICE} --policy {policy}"));
    let queues: [(&str, &str, &[&str]); 3] = [
        ("FILTER", &sfs, &[]),
        ("FAIR", "--slice-us 1 --policy sfs", &[]),
        ("rank", &learned, &["--rehearse", REHEARSALS]),
    ];
    for length in lengths {
        for (queue, slice, crowd) in queues {
            let loader = load(&format!("--no-overload --unit thread {options} {slice}"))?;
            measure(&format!("{queue}.{length}"), cpus + length, crowd)?;
            loader.unload()?;
        }
    }
    Ok(())
}

/// Leaves what the programs take while a crowd of `tasks` takes turns in NAME, and how many
/// tasks want to run before and after in NAME.runnable.
fn measure(name: &str, tasks: usize, options: &[&str]) -> Result<()> {
    let tasks = tasks.to_string();
    let crowd = Crowd::start(&[&["turns", "--tasks", &tasks], options].concat())?;
    sleep(ms(500));
    let before = runnable()?;
    leave_output(
        name,
        Command::new("sfs_crowd").args(["costs", "--seconds", "1"]),
    )?;
    let after = runnable()?;
    leave(&format!("{name}.runnable"), &format!("{before}\n{after}\n"))?;
    crowd.disperse()
}
