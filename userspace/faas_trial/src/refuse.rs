//! Why a trial does not begin: each reason a sentence with its remedy.

use crate::machine::{Machine, Stat};
use std::path::Path;
use std::time::Duration;

/// The share of CPU time that others may use before the trial.
pub const BUSY: f64 = 0.05;

/// For how long the machine is watched for others.
pub const WATCHED: Duration = Duration::from_secs(3);

/// Clocks that count ticks: too coarse for a wait of a millisecond.
const COARSE: [&str; 2] = ["jiffies", "refined-jiffies"];

/// Programs that serve logins from elsewhere.
const REMOTE: [&str; 6] = [
    "sshd",
    "sshd-session",
    "dropbear",
    "mosh-server",
    "in.telnetd",
    "tailscaled",
];

/// Ancestors that are looked at, at most.
const ANCESTORS: usize = 64;

/// What the reasons depend on, beside the machine's files.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct State {
    /// Whether this process is root's.
    pub is_root: bool,
    /// The share of CPU time that others use; `None` if it is unknown.
    pub busy: Option<f64>,
    /// Seconds of the hardware's clock during [`WATCHED`]; `None` if it is unknown.
    pub rtc_s: Option<u64>,
}

/// Why a trial must not begin; empty if it may.
pub fn reasons(machine: &Machine, state: State) -> Vec<String> {
    let mut all = Vec::new();
    if !state.is_root {
        all.push("it needs root, to load a scheduler: run it by sudo".to_string());
    }
    if !machine.has_sched_ext() {
        all.push("this kernel has no sched_ext: `scx_sfs check` tells what is missing".to_string());
    }
    if let Some(name) = machine.loaded() {
        all.push(format!(
            "the sched_ext scheduler {name} is loaded: stop it first, such as by \
             `systemctl stop scx_sfs`"
        ));
    }
    match state.busy {
        Some(share) if share > BUSY => all.push(format!(
            "the machine is busy: others use {:.0} % of its CPUs (at most {:.0} %): stop them, \
             or take the machine out of service",
            share * 100.0,
            BUSY * 100.0
        )),
        Some(_) => {}
        None => {
            all.push("/proc/stat does not tell how busy the machine is: mount /proc".to_string())
        }
    }
    let wanted = WATCHED.as_secs() - 1..=WATCHED.as_secs() + 1;
    if let Some(seconds) = state.rtc_s.filter(|seconds| !wanted.contains(seconds)) {
        all.push(format!(
            "the kernel's clock is wrong: {} s of it are {seconds} s of the hardware's: start \
             the machine again, or choose another clock source",
            WATCHED.as_secs()
        ));
    }
    let clock = machine.clock();
    if COARSE.contains(&clock.as_str()) {
        all.push(format!(
            "the kernel's clock is `{clock}`, which is too coarse: choose another one of \
             /sys/devices/system/clocksource/clocksource0/available_clocksource"
        ));
    }
    all
}

/// Watches the machine while this process sleeps for [`WATCHED`].
pub fn watch(machine: &Machine, is_root: bool) -> State {
    let (ticks, rtc) = (machine.ticks(), machine.rtc_s());
    std::thread::sleep(WATCHED);
    let after = machine.rtc_s();
    State {
        is_root,
        busy: machine.ticks().since(ticks).map(|shares| shares.busy),
        rtc_s: after
            .zip(rtc)
            .map(|(after, before)| after.saturating_sub(before)),
    }
}

/// Whether somebody has logged in from elsewhere to start the process `pid`: by its
/// environment, or by what has started it.
pub fn is_remote(machine: &Machine, pid: i32, variable: impl Fn(&str) -> bool) -> bool {
    if ["SSH_CONNECTION", "SSH_TTY", "SSH_CLIENT"]
        .into_iter()
        .any(variable)
    {
        return true;
    }
    let parent = |known: &Stat| machine.stat(known.parent);
    let line = std::iter::successors(machine.stat(pid), parent);
    line.take(ANCESTORS)
        .any(|one| REMOTE.contains(&one.name.as_str()))
}

/// Whether systemd manages this machine, by its folder in `root`.
pub fn has_systemd(root: &Path) -> bool {
    root.join("run/systemd/system").is_dir()
}

/// Why the process `guard` would end with the login of the process `own`; `None` if it would
/// not.
pub fn tied(machine: &Machine, own: i32, guard: i32) -> Option<String> {
    let remedy = "start the trial on the machine's console, or where systemd-run works";
    let (Some(ours), Some(its)) = (machine.stat(own), machine.stat(guard)) else {
        return Some(format!("the guard does not run: {remedy}"));
    };
    if ours.session == its.session {
        return Some(format!(
            "the guard is in the session of this login, and would end with it: {remedy}"
        ));
    }
    let (ours, its) = (machine.cgroup(own), machine.cgroup(guard));
    (ours == its && ours.contains("/session-")).then(|| {
        format!("the guard is in the cgroup of this login, and would end with it: {remedy}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::tests::fake;

    const FINE: State = State {
        is_root: true,
        busy: Some(0.01),
        rtc_s: Some(3),
    };
    const EXT: (&str, &str) = ("sys/kernel/sched_ext/state", "disabled\n");
    const CLOCK: &str = "sys/devices/system/clocksource/clocksource0/current_clocksource";

    fn only(files: &[(&str, &str)], state: State) -> String {
        let (_root, machine) = fake(files);
        let found = reasons(&machine, state);
        assert_eq!(found.len(), 1, "{found:?}");
        found[0].clone()
    }

    #[test]
    fn a_quiet_machine_is_accepted() {
        let (_root, machine) = fake(&[EXT, (CLOCK, "tsc\n")]);
        assert_eq!(reasons(&machine, FINE), Vec::<String>::new());
    }

    #[test]
    fn each_reason_is_told() {
        let no_root = State {
            is_root: false,
            ..FINE
        };
        assert!(only(&[EXT], no_root).contains("needs root"));
        assert!(only(&[], FINE).contains("no sched_ext"));
        let loaded = [
            ("sys/kernel/sched_ext/state", "enabled"),
            ("sys/kernel/sched_ext/root/ops", "bpfland_1.0"),
        ];
        assert!(only(&loaded, FINE).contains("bpfland_1.0 is loaded"));
        let busy = |busy| State { busy, ..FINE };
        assert!(only(&[EXT], busy(Some(0.12))).contains("others use 12 %"));
        assert!(only(&[EXT], busy(None)).contains("/proc/stat"));
        let rtc = |seconds| State {
            rtc_s: Some(seconds),
            ..FINE
        };
        assert!(only(&[EXT], rtc(0)).contains("3 s of it are 0 s of the hardware's"));
        assert!(only(&[EXT], rtc(30)).contains("clock is wrong"));
        assert!(only(&[EXT, (CLOCK, "jiffies\n")], FINE).contains("`jiffies`"));
    }

    /// A process with this name, parent and session.
    fn stat(name: &str, parent: i32, session: i32) -> String {
        format!("1 ({name}) S {parent} 1 {session} 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 9 9")
    }

    #[test]
    fn a_login_from_elsewhere_is_found() {
        let (shell, server) = (stat("bash", 5, 1), stat("sshd-session", 1, 1));
        let (_root, machine) = fake(&[("proc/9/stat", &shell), ("proc/5/stat", &server)]);
        assert!(is_remote(&machine, 9, |_| false));
        assert!(!is_remote(&machine, 3, |_| false));
        assert!(is_remote(&machine, 3, |name| name == "SSH_CONNECTION"));
        // A line without an end.
        let circle = stat("bash", 9, 1);
        let (_root, machine) = fake(&[("proc/9/stat", &circle)]);
        assert!(!is_remote(&machine, 9, |_| false));
    }

    #[test]
    fn a_guard_in_the_login_is_no_guard() {
        let scope = "0::/user.slice/session-3.scope";
        let unit = "0::/system.slice/guard.service";
        let (one, other) = (stat("a", 1, 4), stat("a", 1, 5));
        let told = |ours: &str, its: &str, place: &str| {
            let (_root, machine) = fake(&[
                ("proc/8/stat", ours),
                ("proc/9/stat", its),
                ("proc/8/cgroup", scope),
                ("proc/9/cgroup", place),
            ]);
            tied(&machine, 8, 9)
        };
        assert!(told(&one, &one, unit)
            .unwrap()
            .contains("session of this login"));
        assert!(told(&one, &other, scope)
            .unwrap()
            .contains("cgroup of this login"));
        assert!(told(&one, "", unit).unwrap().contains("does not run"));
        assert_eq!(told(&one, &other, unit), None);
    }
}
