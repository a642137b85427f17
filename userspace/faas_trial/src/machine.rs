//! What a trial reads about the machine from `/proc` and `/sys`, or from folders in their
//! place.

use std::path::{Path, PathBuf};

/// Where the kernel tells about the machine.
#[derive(Debug, Clone)]
pub struct Machine {
    proc: PathBuf,
    sys: PathBuf,
}

/// CPU time of all CPUs since boot, in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ticks {
    /// Time that anything used, without `steal`.
    pub busy: u64,
    /// Idle time, also while somebody waits for a disk.
    pub idle: u64,
    /// Time that the hypervisor gave to other machines.
    pub steal: u64,
}

/// Shares of all CPUs' time between two moments, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shares {
    /// Used.
    pub busy: f64,
    /// Stolen by the hypervisor.
    pub steal: f64,
}

/// What identifies a process for as long as it lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// The name of its program, which anybody may choose.
    pub name: String,
    /// R, S, D, Z and so on.
    pub state: char,
    /// Its parent.
    pub parent: i32,
    /// Its session.
    pub session: i32,
    /// When it began, in ticks since boot.
    pub begun: u64,
}

impl Machine {
    /// This machine.
    pub fn this() -> Self {
        Self::at(Path::new("/"))
    }

    /// The machine whose `proc` and `sys` are in `root`.
    pub fn at(root: &Path) -> Self {
        Self {
            proc: root.join("proc"),
            sys: root.join("sys"),
        }
    }

    /// The text of a file below `/proc`; empty if there is none.
    pub fn proc(&self, name: &str) -> String {
        text(&self.proc.join(name))
    }

    /// The text of a file below `/sys`; empty if there is none.
    pub fn sys(&self, name: &str) -> String {
        text(&self.sys.join(name))
    }

    /// Whether this kernel has sched_ext.
    pub fn has_sched_ext(&self) -> bool {
        !self.sys("kernel/sched_ext/state").is_empty()
    }

    /// The name of the loaded sched_ext scheduler, if there is one.
    pub fn loaded(&self) -> Option<String> {
        let state = self.sys("kernel/sched_ext/state");
        if state.is_empty() || state == "disabled" {
            return None;
        }
        let name = self.sys("kernel/sched_ext/root/ops");
        Some(if name.is_empty() { state } else { name })
    }

    /// The kernel's release, as `uname -r` prints it.
    pub fn kernel(&self) -> String {
        self.proc("sys/kernel/osrelease")
    }

    /// The model of the first CPU; `unknown` where the kernel does not name it.
    pub fn cpu_model(&self) -> String {
        let known = self.cpu_field("model name");
        known.unwrap_or_else(|| "unknown".to_string())
    }

    /// Whether the CPUs are those of a virtual machine.
    pub fn is_virtual(&self) -> bool {
        let flags = self.cpu_field("flags").unwrap_or_default();
        flags.split_whitespace().any(|flag| flag == "hypervisor")
    }

    /// Whether the CPUs are emulated by a program.
    pub fn is_emulated(&self) -> bool {
        self.cpu_model().contains("TCG")
    }

    fn cpu_field(&self, wanted: &str) -> Option<String> {
        let text = self.proc("cpuinfo");
        let mut fields = text.lines().filter_map(|line| line.split_once(':'));
        let found = fields.find(|(name, _)| name.trim() == wanted);
        found.map(|(_, value)| value.trim().to_string())
    }

    /// The kernel's clock.
    pub fn clock(&self) -> String {
        self.sys("devices/system/clocksource/clocksource0/current_clocksource")
    }

    /// The time of the hardware's clock, in whole seconds; `None` if there is none.
    pub fn rtc_s(&self) -> Option<u64> {
        self.sys("class/rtc/rtc0/since_epoch").parse().ok()
    }

    /// Whether the cores run two threads; `None` if the kernel does not tell.
    pub fn smt(&self) -> Option<bool> {
        match self.sys("devices/system/cpu/smt/active").as_str() {
            "1" => Some(true),
            "0" => Some(false),
            _ => None,
        }
    }

    /// How the frequency of the first CPU is chosen, such as `performance`; empty if it
    /// cannot be.
    pub fn governor(&self) -> String {
        self.sys("devices/system/cpu/cpu0/cpufreq/scaling_governor")
    }

    /// The mean frequency of the CPUs at this moment, in MHz; `None` if the kernel does not
    /// tell it.
    pub fn frequency_mhz(&self) -> Option<f64> {
        let folders = std::fs::read_dir(self.sys.join("devices/system/cpu")).ok()?;
        let khz = folders.flatten().filter_map(|folder| {
            let known = text(&folder.path().join("cpufreq/scaling_cur_freq"));
            known.parse::<f64>().ok()
        });
        faas_data::stats::mean(&khz.collect::<Vec<_>>()).map(|khz| khz / 1e3)
    }

    /// CPU time since boot.
    pub fn ticks(&self) -> Ticks {
        let text = self.proc("stat");
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "));
        let fields = line.unwrap_or_default().split_whitespace();
        let ticks: Vec<u64> = fields.map(|field| field.parse().unwrap_or(0)).collect();
        let at = |index: usize| ticks.get(index).copied().unwrap_or(0);
        // user nice system idle iowait irq softirq steal; guests are a part of user.
        Ticks {
            busy: at(0) + at(1) + at(2) + at(5) + at(6),
            idle: at(3) + at(4),
            steal: at(7),
        }
    }

    /// What identifies the process `pid`; `None` if there is none.
    pub fn stat(&self, pid: i32) -> Option<Stat> {
        let text = self.proc(&format!("{pid}/stat"));
        // The name is in parentheses, and may have some itself.
        let (front, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<i64>().ok();
        Some(Stat {
            name: front.split_once('(')?.1.to_string(),
            state: fields.first()?.chars().next()?,
            parent: number(1)? as i32,
            session: number(3)? as i32,
            begun: number(19)? as u64,
        })
    }

    /// The cgroup of a process; empty if it is unknown.
    pub fn cgroup(&self, pid: i32) -> String {
        let text = self.proc(&format!("{pid}/cgroup"));
        let v2 = text.lines().find_map(|line| line.strip_prefix("0::"));
        v2.unwrap_or_default().to_string()
    }

    /// All processes.
    pub fn processes(&self) -> Vec<i32> {
        let Ok(entries) = std::fs::read_dir(&self.proc) else {
            return Vec::new();
        };
        let names = entries.flatten().map(|entry| entry.file_name());
        names
            .filter_map(|name| name.to_str()?.parse().ok())
            .collect()
    }

    /// Whether the environment of a process has this variable with this value.
    pub fn has_variable(&self, pid: i32, name: &str, value: &str) -> bool {
        let path = self.proc.join(pid.to_string()).join("environ");
        let wanted = format!("{name}={value}");
        let found = std::fs::read(path).unwrap_or_default();
        found
            .split(|&byte| byte == 0)
            .any(|one| one == wanted.as_bytes())
    }
}

/// The text of a file without the space around it; empty if it cannot be read.
fn text(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes).trim().to_string()
}

impl Ticks {
    /// The shares since `before`; `None` if no tick has passed.
    pub fn since(self, before: Self) -> Option<Shares> {
        let busy = self.busy.saturating_sub(before.busy);
        let idle = self.idle.saturating_sub(before.idle);
        let steal = self.steal.saturating_sub(before.steal);
        let all = busy + idle + steal;
        (all > 0).then(|| Shares {
            busy: busy as f64 / all as f64,
            steal: steal as f64 / all as f64,
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use tempfile::TempDir;

    /// A machine of files that are given by their paths.
    pub(crate) fn fake(files: &[(&str, &str)]) -> (TempDir, Machine) {
        let root = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let machine = Machine::at(root.path());
        (root, machine)
    }

    #[test]
    fn a_machine_is_read() {
        let (_root, machine) = fake(&[
            ("proc/cpuinfo", "processor\t: 0\nmodel name\t: QEMU TCG CPU version 2.5+\nflags\t\t: fpu hypervisor\n"),
            ("proc/stat", "cpu  1 2 3 40 5 6 7 8 9 10\ncpu0 1 2 3\n"),
            ("proc/7/stat", "7 (a) b) S 3 7 5 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4321 9\n"),
            ("proc/7/cgroup", "0::/user.slice\n"),
            ("proc/7/environ", "A=1\0TOKEN=xy\0"),
            ("sys/kernel/sched_ext/state", "enabled\n"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2000000\n"),
            ("sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "3000000\n"),
        ]);
        assert!(machine.is_virtual() && machine.is_emulated());
        assert_eq!(
            machine.ticks(),
            Ticks {
                busy: 19,
                idle: 45,
                steal: 8
            }
        );
        let stat = machine.stat(7).unwrap();
        assert_eq!((stat.name.as_str(), stat.state), ("a) b", 'S'));
        assert_eq!((stat.parent, stat.session, stat.begun), (3, 5, 4321));
        assert_eq!(machine.stat(8), None);
        assert_eq!(machine.cgroup(7), "/user.slice");
        assert_eq!(machine.processes(), [7]);
        assert!(machine.has_variable(7, "TOKEN", "xy"));
        assert!(!machine.has_variable(7, "TOKEN", "x") && !machine.has_variable(8, "A", "1"));
        assert_eq!(machine.loaded().as_deref(), Some("enabled"));
        assert_eq!(machine.frequency_mhz(), Some(2500.0));
        assert_eq!((machine.smt(), machine.governor().as_str()), (None, ""));
    }

    #[test]
    fn shares_are_those_between_two_moments() {
        let ticks = |busy, idle, steal| Ticks { busy, idle, steal };
        let shares = ticks(150, 230, 20).since(ticks(100, 200, 0)).unwrap();
        assert_eq!((shares.busy, shares.steal), (0.5, 0.2));
        assert_eq!(ticks(1, 2, 3).since(ticks(1, 2, 3)), None);
    }
}
