//! A machine to run the behaviour suite on, and the cases that make sense there.

use std::fmt::{self, Display};
use std::str::FromStr;

/// The machines by default: each kernel, then one kernel on machines that differ.
const DEFAULTS: [&str; 14] = [
    "6.16",
    "6.17",
    "6.18",
    "6.19",
    "7.0",
    "7.1",
    "7.2+deb14",
    "6.18:1",
    "6.18:2",
    "6.18:3",
    "6.18:8",
    "6.18:64",
    "6.18:2x2x2",
    "6.18:4:tcg",
];

/// With more CPUs than this a machine takes minutes to boot.
pub const MANY_CPUS: u32 = 16;

/// Cases for machines with many CPUs: those that are about CPUs.
const MANY_CPUS_CASES: [&str; 7] = [
    "loads_and_stops_on_sigint",
    "filter_preempts_fair",
    "long_is_demoted_once",
    "pinned_runs_in_filter",
    "migrates_while_running",
    "threads_share_one_credit",
    "verifier_has_little_to_do",
];

/// Cases for real time. On a host that has fewer CPUs than the guest, CPU time has gaps that
/// are the host's: these cases do not depend on times.
const REAL_TIME_CASES: [&str; 27] = [
    "loads_and_stops_on_sigint",
    "survives_sigkill_of_the_loader",
    "refuses_a_second_loader",
    "process_from_before_load_runs_in_fair",
    "only_sandboxes_are_functions",
    "sandbox_subtree_belongs_to_it",
    "empty_sandbox_starts_anew",
    "moved_out_is_no_function",
    "hints_for_nobody_harm_nobody",
    "fair_gives_no_credit",
    "as_many_shards_as_cpus_at_most",
    "migrates_while_running",
    "migrates_while_queued",
    "affinity_and_nice_ping_pong",
    "restarts_on_cpu_hotplug",
    "suspend_and_resume",
    "nice_changes_while_queued",
    "policy_changes_while_running",
    "partial_takes_sched_ext_only",
    "stops_and_continues",
    "traced_in_mid_invocation",
    "frozen_and_thawed",
    "killed_while_forking",
    "vfork_and_exec_under_load",
    "thread_becomes_another_program",
    "ten_thousand_sleepers_wake_at_once",
    "spins_where_it_must_stay",
];

/// The way of emulation in real time.
const REAL_TIME: &str = "tcg";

/// A kernel, CPUs, and a way of emulation: `KERNEL[:CPUS[:ACCEL]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// A version, as vm/fetch-kernel knows it.
    pub kernel: String,
    /// A number, or a topology as `2x2x2`.
    pub cpus: String,
    /// The way of emulation, as vm/run takes it.
    pub accel: String,
}

impl FromStr for Machine {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.splitn(3, ':');
        let mut next = |default: &str| match parts.next() {
            None | Some("") => default.to_string(),
            Some(part) => part.to_string(),
        };
        let machine = Self {
            kernel: next(""),
            cpus: next("4"),
            accel: next("icount"),
        };
        if machine.kernel.is_empty() || machine.kernel.contains('/') {
            return Err("the kernel must be a version such as 6.18".into());
        }
        if !machine
            .cpus
            .split('x')
            .all(|part| part.parse::<u8>().is_ok_and(|n| n > 0))
            || ![1, 3].contains(&machine.cpus.split('x').count())
        {
            return Err(
                "the CPUs must be a number from 1 to 255, or a topology such as 2x2x2".into(),
            );
        }
        if !["icount", "tcg", "kvm", "auto"].contains(&machine.accel.as_str()) {
            return Err("the emulation must be icount, tcg, kvm or auto".into());
        }
        Ok(machine)
    }
}

impl Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kernel,
            cpus,
            accel,
        } = self;
        write!(f, "kernel {kernel}, {cpus} CPUs, {accel}")
    }
}

impl Machine {
    /// The name of the file that keeps what was said there.
    pub fn file_name(&self) -> String {
        format!("{}-{}-{}", self.kernel, self.cpus, self.accel)
    }

    /// The options of tests/run for the kernel and the CPUs.
    pub fn options(&self) -> [&str; 4] {
        let cpus = match self.cpus.contains('x') {
            true => "--topology",
            false => "--cpus",
        };
        ["--kernel", &self.kernel, cpus, &self.cpus]
    }

    /// The cases that make sense there; none stands for all.
    pub fn cases(&self) -> &'static [&'static str] {
        // Of a topology: the sockets.
        let cpus = self.cpus.split('x').next().unwrap_or_default();
        if cpus.parse::<u32>().is_ok_and(|cpus| cpus > MANY_CPUS) {
            &MANY_CPUS_CASES
        } else if self.accel == REAL_TIME {
            &REAL_TIME_CASES
        } else {
            &[]
        }
    }
}

/// The machines by default.
pub fn defaults() -> Vec<Machine> {
    // A test parses them all.
    let parsed = DEFAULTS.iter().filter_map(|text| text.parse().ok());
    parsed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(text: &str) -> Machine {
        text.parse()
            .unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        assert_eq!(machine("6.18").file_name(), "6.18-4-icount");
        assert_eq!(machine("6.18::tcg").file_name(), "6.18-4-tcg");
        assert_eq!(
            machine("6.18:2x2x2:kvm").options()[2..],
            ["--topology", "2x2x2"]
        );
        assert_eq!(
            machine("6.18:8").options(),
            ["--kernel", "6.18", "--cpus", "8"]
        );
        for bad in [
            "",
            ":4",
            "a/b",
            "6.18:0",
            "6.18:256",
            "6.18:2x2",
            "6.18:x",
            "6.18:4:x",
            "6.18:4:tcg:1",
        ] {
            assert!(bad.parse::<Machine>().is_err(), "{bad}");
        }
    }

    #[test]
    fn all_defaults_are_machines() {
        assert_eq!(defaults().len(), DEFAULTS.len());
    }

    #[test]
    fn some_machines_have_cases_of_their_own() {
        assert!(machine("6.18").cases().is_empty());
        assert_eq!(machine("6.18:64").cases(), MANY_CPUS_CASES);
        assert_eq!(machine("6.18:64:tcg").cases(), MANY_CPUS_CASES);
        assert_eq!(machine("6.18:4:tcg").cases(), REAL_TIME_CASES);
    }

    #[test]
    fn the_cases_are_those_of_the_suite() {
        let files = concat!(env!("CARGO_MANIFEST_DIR"), "/../sfs_*_cases/src/**/*.rs");
        let suite: String = glob::glob(files)
            .unwrap()
            .map(|file| std::fs::read_to_string(file.unwrap()).unwrap())
            .collect();
        for case in MANY_CPUS_CASES.iter().chain(&REAL_TIME_CASES) {
            assert!(
                suite.contains(&format!("name: \"{case}\"")),
                "the suite has no case {case}"
            );
        }
    }
}
