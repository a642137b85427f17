//! However it ends, no VM stays behind, and what is finished is kept.

use crate::tree::{soon, tree, Said};
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;

/// Whether a process has ended.
fn is_gone(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    // Until somebody waits for it, what has ended is a zombie.
    stat.map_or(true, |stat| stat.contains(") Z "))
}

/// Files of the results' folder, hidden or not, with `text` in their names.
fn left(folder: &std::path::Path, text: &str) -> Vec<String> {
    let folders = [folder.to_path_buf(), folder.join(".bench")];
    let entries = folders
        .iter()
        .flat_map(|one| std::fs::read_dir(one).unwrap());
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| name.contains(text)).collect()
}

/// Sends `signal` while the second of three rows runs. Returns how bench ended, and what it
/// said.
fn interrupt(signal: Signal) -> Option<Said> {
    let tree = crate::tree::Tree::new()?;
    let bench = tree.start("eevdf scx_slow fifo");
    let vm = tree.await_file("slow");
    tree.bench("eevdf", &[])
        .ended(2)
        .says("another bench is at work in out");
    kill(Pid::from_raw(bench.id() as i32), signal).unwrap();
    let said = Said::of(&bench.wait_with_output().unwrap());
    assert!(soon(|| is_gone(&vm)), "the VM is still there: {said:?}");
    assert_eq!(tree.booted(), "eevdf scx_slow");
    if signal != Signal::SIGKILL {
        assert_eq!(left(&tree.at("out"), "slow"), [""; 0]);
    }
    tree.write("fast", "");
    let next = tree.bench("eevdf scx_slow fifo", &[]).ended(0);
    next.says("eevdf (1 of 3) is finished from an earlier run");
    assert_eq!(tree.booted(), "scx_slow fifo");
    Some(said)
}

#[test]
fn signals_end_the_vm_and_the_next_run_goes_on() {
    let _ = tree!();
    for (signal, status) in [
        (Signal::SIGINT, 130),
        (Signal::SIGTERM, 143),
        (Signal::SIGHUP, 143),
    ] {
        let said = interrupt(signal).unwrap().ended(status);
        said.says("interrupted: 1 of 3 rows are finished and kept in out");
    }
}

#[test]
fn a_bench_that_is_killed_leaves_no_vm_behind() {
    let _ = tree!();
    interrupt(Signal::SIGKILL).unwrap().ended(-1);
}

#[test]
fn a_simulation_ends_as_well() {
    let tree = tree!();
    let sim = tree.at("userspace/target/release/sfs_sim");
    std::fs::remove_file(&sim).unwrap();
    tree.program(
        "userspace/target/release/sfs_sim",
        "#!/bin/bash\necho $$ >slow.new && mv slow.new slow && exec sleep 60\n",
    );
    let bench = tree.start("ideal");
    let pid = tree.await_file("slow");
    kill(Pid::from_raw(bench.id() as i32), Signal::SIGINT).unwrap();
    let said = Said::of(&bench.wait_with_output().unwrap()).ended(130);
    said.says("interrupted: 0 of 1 rows are finished");
    assert!(is_gone(&pid));
    assert_eq!(left(&tree.at("out"), "ideal"), [""; 0]);
}

#[test]
fn several_vms_run_at_the_same_time() {
    let tree = tree!();
    let mut command = tree.command("scx_slow fifo", &[("JOBS", "2")]);
    command.stderr(std::process::Stdio::piped());
    let bench = command.spawn().unwrap();
    tree.await_file("slow");
    // The other row is finished while this one runs.
    tree.await_file("out/.bench/fifo.manifest");
    kill(Pid::from_raw(bench.id() as i32), Signal::SIGINT).unwrap();
    let said = Said::of(&bench.wait_with_output().unwrap()).ended(130);
    said.says("interrupted: 1 of 2 rows are finished");
}
