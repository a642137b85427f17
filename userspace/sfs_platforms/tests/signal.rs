//! A signal ends the VMs as well. In a file of its own: a process that starts while another test
//! writes a program would keep that program from starting.

mod common;

use common::Tree;
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use std::process::Stdio;
use std::time::Duration;

/// Whether something comes true within half a minute.
fn soon(is_so: impl Fn() -> bool) -> bool {
    (0..3000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        is_so()
    })
}

#[test]
fn vms_end_with_the_program() {
    let tree = Tree::new();
    let rows = ("SCHEDULERS", "scx_slow eevdf");
    let mut command = tree.command(&["functions-framework"], &[rows, ("JOBS", "1")]);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    assert!(soon(|| tree.place.path("begun").exists()));
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    assert!(tree.place.path("ended").exists());
    assert_eq!(tree.booted(), ["scx_slow"]);
}
