//! Time and kernel memory of loading and unloading the scheduler.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use sfs_testbed::cgroup::enable_cpu_controller;

use super::load;
use super::machine::{leave, leave_output, leave_slabs, uptime, Crowd};

/// Without a crowd, and with one of so many sleepers.
pub fn tasks(options: &str, count: usize) -> Result<()> {
    load_once()?;
    for count in [0, count] {
        let crowd = Crowd::start(&["sleepers", "--tasks", &count.to_string()])?;
        measure(&format!("tasks.{count}"), options)?;
        crowd.disperse()?;
    }
    Ok(())
}

/// Without a sandbox, and with so many empty ones.
pub fn sandboxes(options: &str, count: usize) -> Result<()> {
    load_once()?;
    let above = Path::new("/sys/fs/cgroup/box");
    fs::create_dir(above).context("cannot make a cgroup")?;
    enable_cpu_controller()?;
    fs::write(above.join("cgroup.subtree_control"), "+cpu").context("no CPU controller")?;
    let options = format!("--cgroup box/* {options}");
    measure("sandboxes.0", &options)?;
    for number in 0..count {
        fs::create_dir(above.join(number.to_string())).context("cannot make a sandbox")?;
    }
    measure(&format!("sandboxes.{count}"), &options)
}

/// Costs of the first time alone are not counted.
fn load_once() -> Result<()> {
    load("")?.unload()
}

/// Leaves in NAME the uptime before and after loading and before and after unloading, the
/// kernel's objects before and after loading, and the maps.
fn measure(name: &str, options: &str) -> Result<()> {
    leave_slabs(&format!("{name}.before"))?;
    let mut times = vec![uptime()?];
    let loader = load(options)?;
    times.push(uptime()?);
    leave_slabs(&format!("{name}.after"))?;
    let mut maps = Command::new("bpftool");
    leave_output(&format!("{name}.maps"), maps.args(["map", "show"]))?;
    times.push(uptime()?);
    loader.unload()?;
    times.push(uptime()?);
    leave(name, &(times.join("\n") + "\n"))
}
