//! `boot.sh` for real, with some programs of this machine inside.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::{killpg, Signal};
use nix::unistd::Pid;
use sfs_jobs::tree::in_path;
use sfs_skip::skip;
use tempfile::TempDir;

use super::machine::{chown, Machine, Who, ROOT_HOME, RUST, USER_HOME, USER_ID};
use super::obstacle;

const CANNOT: &str = "only root can try, where it may mount";
/// What `boot.sh` and the tests call inside.
const PROGRAMS: [&str; 8] = [
    "bash", "cat", "env", "id", "ls", "setpriv", "sleep", "touch",
];
/// Copies programs, and the libraries that they are linked with, into the folder `$1`.
const COPY: &str = r#"
set -euo pipefail
root=$1 && shift
cp -L --parents -t "$root" /bin/bash "$@" $(ldd /bin/bash "$@" | grep -o ' */[^ :]* ' | sort -u)
"#;

/// A file system with [`PROGRAMS`] and homes.
fn file_system() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for folder in ["proc", "sys", "dev", RUST, ROOT_HOME, USER_HOME] {
        fs::create_dir_all(root.path().join(folder)).unwrap();
    }
    let mut copy = Command::new("bash");
    copy.args(["-c", COPY, "copy"]).arg(root.path());
    copy.args(PROGRAMS.map(|name| in_path(name).unwrap()));
    assert!(copy.status().unwrap().success());
    let mut chown = chown(&root.path().join(USER_HOME), USER_ID);
    assert!(chown.status().unwrap().success());
    fs::set_permissions(root.path(), Permissions::from_mode(0o755)).unwrap();
    root
}

/// The command of a machine with this file system.
fn inside(root: &TempDir, who: Who, text: &str) -> Command {
    // Nothing here asks for Rust: any folder will do.
    let machine = Machine::new(root.path().into(), Path::new("/usr"));
    machine.command(who, text)
}

#[test]
fn commands_run_in_their_own_machine() {
    if obstacle().is_some() {
        skip!(CANNOT);
    }
    let root = file_system();
    for (who, said) in [
        (Who::Root, "0 0 /root /root\n"),
        (Who::User, "1000 1000 /home/user /home/user\n"),
    ] {
        let text = "echo $(id -u) $(id -g) $HOME $PWD; ls /opt/rust >list; exit 7";
        let output = inside(&root, who, text).output().unwrap();
        assert_eq!(output.status.code(), Some(7), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), said);
        let list = fs::read_to_string(root.path().join(who.home()).join("list"));
        assert!(list.unwrap().lines().any(|name| name == "bin"), "{who:?}");
    }
    assert_eq!(fs::read_dir(root.path().join("proc")).unwrap().count(), 0);
}

#[test]
fn only_offline_commands_have_no_network() {
    if obstacle().is_some() {
        skip!(CANNOT);
    }
    let root = file_system();
    let routes = |text: &str| text.lines().skip(1).count();
    for (who, want) in [
        (
            Who::Root,
            routes(&fs::read_to_string("/proc/net/route").unwrap()),
        ),
        (Who::Offline, 0),
    ] {
        let output = inside(&root, who, "cat /proc/net/route").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(routes(&text), want, "{who:?}: {text}");
    }
}

/// Otherwise a test inside that interrupts a script would wait for its end.
#[test]
fn commands_do_not_ignore_signals_from_the_terminal() {
    if obstacle().is_some() {
        skip!(CANNOT);
    }
    let root = file_system();
    let output = inside(&root, Who::Root, "cat /proc/self/status").output();
    let status = String::from_utf8(output.unwrap().stdout).unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = u64::from_str_radix(ignored.unwrap().trim(), 16).unwrap();
    for signal in [Signal::SIGINT, Signal::SIGQUIT] {
        assert_eq!(ignored >> (signal as i32 - 1) & 1, 0, "{signal}");
    }
}

/// Without a handler the first process would ignore the signal, and its caller would wait.
#[test]
fn a_machine_ends_when_it_is_asked_to() {
    if obstacle().is_some() {
        skip!(CANNOT);
    }
    let root = file_system();
    let text = "trap '' TERM; touch runs; sleep 1000; sleep 1000";
    let mut command = inside(&root, Who::Root, text);
    let mut child = command.process_group(0).spawn().unwrap();
    let group = Pid::from_raw(child.id() as i32);
    let runs = within(|| root.path().join("root/runs").exists());
    killpg(group, Signal::SIGTERM).unwrap();
    let ended = within(|| child.try_wait().unwrap().is_some());
    // Whatever is left, so that the test ends.
    let _ = killpg(group, Signal::SIGKILL);
    let status = child.wait().unwrap();
    assert!(runs && ended, "it runs: {runs}, it has ended: {ended}");
    assert_eq!(status.code(), Some(143));
}

/// Returns true as soon as `done` does, false if it takes too long.
fn within(mut done: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(30) {
        if done() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}
