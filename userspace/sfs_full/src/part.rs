//! The parts of `make test-full`.

use crate::code::About;
use crate::kept::Outcome;
use crate::matrix::machine::{self, Machine, MANY_CPUS};
use anyhow::Result;
use sfs_jobs::failure::refuse;
use sfs_jobs::job;
use sfs_jobs::tree::Tree;
use std::process::Command;

/// Cases of a part on a machine with many CPUs, where all of them take more than an hour; booting
/// takes a minute, so not one alone.
pub const CASES_PER_PART: usize = 16;

/// Real seconds until a guest is given up: it may have many CPUs, and the host other work.
const TIMEOUT: &str = "10800";

/// What `sfs_suite stress` runs, each part for ten minutes of the guest. They run in real time, with
/// the CPUs on several threads of the host: ten minutes of virtual time take hours, and threads
/// race there only as the emulator lets them.
const MIXES: [&str; 7] = [
    "aggressive",
    "affinity",
    "fork",
    "cyclic",
    "messages",
    "groups",
    "memory",
];

/// Something to run, with a result of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its name. Parts whose names are the same up to `#` are one row of the table.
    pub name: String,
    /// The command, from the top of the repository.
    pub command: Vec<String>,
    /// What its result is about.
    pub about: About,
}

impl Part {
    fn new(about: About, name: impl Into<String>, command: &[&str]) -> Self {
        Self {
            name: name.into(),
            command: command.iter().map(|word| word.to_string()).collect(),
            about,
        }
    }

    /// Its call, from the top of the repository. A name without a slash is a program of the host.
    pub fn call(&self, tree: &Tree) -> Command {
        let program = &self.command[0];
        let mut call = match program.contains('/') {
            true => job::call(tree, program),
            false => Command::new(program),
        };
        call.current_dir(tree.root()).args(&self.command[1..]);
        // What this make was told is not for the make of a part.
        for told in ["MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS"] {
            call.env_remove(told);
        }
        call
    }

    /// The outcome that this exit status stands for. Our own programs end with 2 if they cannot begin,
    /// as without a tool; make and cargo after any failure.
    pub fn outcome(&self, status: i32) -> Outcome {
        let is_ours = !matches!(self.command[0].as_str(), "make" | "scripts/cargo-test");
        match status {
            0 => Outcome::Passed,
            2 if is_ours => Outcome::Skipped,
            _ => Outcome::Failed,
        }
    }

    /// The name of its row in the table.
    pub fn group(&self) -> &str {
        self.name.split('#').next().unwrap_or_default()
    }
}

/// All parts. `cases` are the names of the behaviour suite's cases, `seed` is the first seed of the
/// search in the model.
pub fn all(cases: &[String], seed: u64) -> Vec<Part> {
    use About::{Everything, Live, Model};
    let mut parts = vec![Part::new(Everything, "units", &["make", "test-unit"])];
    let vm = [
        "scripts/cargo-test",
        "--release",
        "--locked",
        "-p",
        "sfs_scripts",
        "--test",
        "vm",
    ];
    parts.push(Part::new(Everything, "vm", &vm));
    let machines = machine::defaults();
    parts.extend(machines.iter().flat_map(|machine| suite(machine, cases)));
    let seed = format!("SEED={seed}");
    let search = ["make", "simulate", "SECONDS=3600", &seed];
    parts.push(Part::new(Model, "search", &search));
    let sanitize = ["make", "sanitize", "SEEDS=300"];
    parts.push(Part::new(Model, "sanitize", &sanitize));
    let stress = "userspace/target/release/sfs_suite";
    parts.extend(MIXES.map(|mix| {
        let command = [stress, "stress", "--accel", "tcg", "--seconds", "600", mix];
        Part::new(Live, format!("stress/{mix}"), &command)
    }));
    parts.extend(["cycles", "kills"].map(|mix| {
        let command = [stress, "stress", "--accel", "tcg", mix];
        Part::new(Live, format!("stress/{mix}"), &command)
    }));
    let service = "userspace/target/release/sfs_service";
    parts.push(Part::new(Everything, "service", &[service, "test"]));
    let release = "userspace/target/release/sfs_release";
    parts.extend(["12", "13"].map(|debian| {
        let command = [release, "--workspace", "userspace", "fresh", debian];
        Part::new(Everything, format!("fresh/{debian}"), &command)
    }));
    parts
}

/// The behaviour suite on a machine.
fn suite(machine: &Machine, cases: &[String]) -> Vec<Part> {
    let name = format!("suite/{}:{}", machine.kernel, machine.cpus);
    let name = match machine.accel.as_str() {
        "icount" => name,
        accel => format!("{name}:{accel}"),
    };
    let mut command = vec!["tests/run"];
    command.extend(machine.options());
    command.extend(["--accel", &machine.accel, "--timeout", TIMEOUT]);
    let is_large = machine.cpus.parse().is_ok_and(|cpus: u32| cpus > MANY_CPUS);
    if !is_large {
        command.extend(machine.cases());
        return vec![Part::new(About::Live, name, &command)];
    }
    command.extend(["--jobs", "1"]);
    let block = |(index, block): (usize, &[String])| {
        let mut command = command.clone();
        command.extend(block.iter().map(String::as_str));
        Part::new(About::Live, format!("{name}#{:02}", index + 1), &command)
    };
    cases
        .chunks(CASES_PER_PART)
        .enumerate()
        .map(block)
        .collect()
}

/// The parts that the patterns stand for; all without a pattern.
///
/// # Errors
/// If a pattern stands for none.
pub fn choose<'a>(parts: &'a [Part], patterns: &[String]) -> Result<Vec<&'a Part>> {
    let matches = |part: &Part, pattern: &str| match pattern.strip_suffix('*') {
        Some(beginning) => part.name.starts_with(beginning),
        None => part.name == pattern,
    };
    for pattern in patterns {
        if !parts.iter().any(|part| matches(part, pattern)) {
            refuse!("there is no part {pattern}; --list prints all");
        }
    }
    let wanted =
        |part: &&Part| patterns.is_empty() || patterns.iter().any(|pattern| matches(part, pattern));
    Ok(parts.iter().filter(wanted).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Two whole parts of them on a machine with many CPUs, and one that is not.
    const CASES: usize = 2 * CASES_PER_PART + 1;

    fn parts() -> Vec<Part> {
        let cases: Vec<String> = (0..CASES).map(|number| format!("case_{number}")).collect();
        all(&cases, 1)
    }

    #[test]
    fn many_cpus_have_a_part_for_some_cases_and_all_cases_have_one() {
        let parts = parts();
        let large = choose(&parts, &["suite/6.18:64*".into()]).unwrap();
        assert_eq!(large.len(), 3);
        assert!(large.iter().all(|part| part.group() == "suite/6.18:64"));
        let cases = large.iter().flat_map(|part| &part.command);
        let cases = cases.filter(|word| word.starts_with("case_")).count();
        assert_eq!(cases, CASES);
    }

    #[test]
    fn each_part_calls_a_program_that_is_there() {
        let top = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let tree = Tree::new(top, None);
        for part in parts() {
            let call = part.call(&tree);
            let program = Path::new(call.get_program());
            match program.parent().filter(|folder| *folder != Path::new("")) {
                // Built by make test-full itself.
                Some(folder) if folder.ends_with("target/release") => {}
                Some(_) => assert!(program.exists(), "{}", program.display()),
                None => assert_eq!(program, Path::new("make")),
            }
            assert_eq!(call.get_current_dir(), Some(tree.root()));
        }
    }

    #[test]
    fn a_part_that_cannot_begin_is_skipped() {
        let of = |name: &str, status| {
            let parts = parts();
            let found = parts.iter().find(|part| part.name == name);
            found.unwrap().outcome(status)
        };
        let stress = [0, 1, 2, 125].map(|status| of("stress/fork", status));
        assert_eq!(
            stress,
            [
                Outcome::Passed,
                Outcome::Failed,
                Outcome::Skipped,
                Outcome::Failed
            ]
        );
        assert_eq!(of("search", 2), Outcome::Failed);
        assert_eq!(of("vm", 2), Outcome::Failed);
    }

    #[test]
    fn names_are_different_and_patterns_choose() {
        let parts = parts();
        let mut names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), parts.len());
        assert_eq!(choose(&parts, &[]).unwrap().len(), parts.len());
        assert_eq!(choose(&parts, &["units".into()]).unwrap().len(), 1);
        let error = choose(&parts, &["unit".into()]).unwrap_err().to_string();
        assert_eq!(error, "there is no part unit; --list prints all");
    }
}
