//! `scx_sfs check`.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;
use clap::Args;
use sfs_bpf::exit::{Failure, Status};
use sfs_bpf::NAME;
use sfs_check::{examine, privileges, worst, Finding, Machine, Outcome, Wanted};
use sfs_text::{line, wrap, LINE_CHARS};

use super::{one_line, Configuration, Refusal, Request};
use crate::terminal::{self, Paint};

/// Width of the columns before the text: outcome and check.
const INDENT: usize = 6 + 17;

/// Check whether this machine and the configuration are ready for scx_sfs.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Each line is ok, warn (scx_sfs runs, but something could be better) or fail,
with what to do. It loads and changes nothing. As another user than root it
cannot see everything.

Exit status: 0 no fail; 1 a fail; 2 wrong options.

Examples:
  scx_sfs check                               # this machine, as root
  scx_sfs check -- --cgroup 'functions/*'     # for a start with this option
  scx_sfs check --json | jq '.[] | select(.outcome != \"ok\")'")]
pub struct CheckCommand {
    /// Print JSON: a list of findings.
    #[arg(long)]
    pub json: bool,

    /// Check the files below FOLDER instead of those of this machine, such as
    /// the root of an image or of a container.
    #[arg(
        long,
        value_name = "FOLDER",
        default_value = "/",
        hide_default_value = true
    )]
    pub root: std::path::PathBuf,

    /// The options of the start to check for.
    #[arg(last = true, value_name = "OPTION")]
    pub options: Vec<OsString>,
}

impl CheckCommand {
    /// Checks, and prints the findings.
    ///
    /// # Errors
    ///
    /// A check fails, without a message of its own, or nothing can be printed.
    pub fn run(&self) -> Result<(), Failure> {
        let findings = findings(&self.root, &self.options);
        let text = if self.json {
            let text = serde_json::to_string_pretty(&findings);
            text.context("the findings are no JSON")? + "\n"
        } else {
            text_of(&findings, terminal::columns(), terminal::paint())
        };
        match io::stdout().write_all(text.as_bytes()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                let error: Result<(), _> = Err(error).context("cannot print the findings");
                return Ok(error?);
            }
            _ => {}
        }
        match worst(&findings) {
            Outcome::Fail => Err(Failure {
                status: Status::Failed,
                error: None,
            }),
            Outcome::Ok | Outcome::Warn => Ok(()),
        }
    }
}

/// Returns the findings about a machine and a start there with these options.
fn findings(root: &Path, options: &[OsString]) -> Vec<Finding> {
    let name = [OsString::from(NAME)];
    let arguments = name.iter().chain(options);
    let file = super::file::USUAL;
    let usual = root.join(file.trim_start_matches('/'));
    let request = Request::read(arguments, &usual);
    let (finding, wanted) = of_configuration(&usual, request);
    let mut all = vec![finding];
    // The files of another root have no processes.
    if root == Path::new("/") {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        all.push(privileges(&status));
    }
    all.extend(examine(&Machine::at(root), wanted.as_ref()));
    all
}

fn of_configuration(usual: &Path, request: Result<Request, Refusal>) -> (Finding, Option<Wanted>) {
    const CHECK: &str = "configuration";
    match request {
        Ok(Request::Schedule(configuration)) => {
            let found = match usual.exists() {
                true => format!("{} is valid", usual.display()),
                false => format!("defaults: there is no {}", usual.display()),
            };
            (Finding::ok(CHECK, found), Some(wanted(&configuration)))
        }
        Ok(Request::Other(_)) => (
            Finding::fail(
                CHECK,
                "with these options scx_sfs would not schedule",
                "leave out commands and options such as --monitor",
            ),
            None,
        ),
        Err(Refusal::File(sentence)) => (
            Finding::fail(
                CHECK,
                sentence,
                "correct that line; scx_sfs config --example prints all keys",
            ),
            None,
        ),
        Err(Refusal::Options(error)) => (
            Finding::fail(
                CHECK,
                one_line(&error),
                "correct that option: scx_sfs --help",
            ),
            None,
        ),
    }
}

fn wanted(configuration: &Configuration) -> Wanted {
    let options = configuration.options();
    let texts = configuration.values("cgroup").into_iter();
    Wanted {
        cgroups: texts.zip(options.cgroup.iter().cloned()).collect(),
        ignore_quotas: options.ignore_quotas,
        partial: options.partial,
    }
}

/// Returns the findings as text for a terminal with so many columns, and a line that counts.
fn text_of(findings: &[Finding], columns: usize, paint: Paint) -> String {
    let mut text = String::new();
    for one in findings {
        let word = paint.outcome(one.outcome.word());
        let pad = " ".repeat(6 - one.outcome.word().len());
        let found = wrap(&line(&one.found, LINE_CHARS), columns, INDENT);
        text += &format!("{word}{pad}{:17}{found}\n", one.check);
        if let Some(remedy) = &one.remedy {
            let remedy = format!("-> {}", line(remedy, LINE_CHARS));
            let remedy = wrap(&remedy, columns, INDENT);
            text += &format!("{:INDENT$}{remedy}\n", "");
        }
    }
    let count = |outcome| findings.iter().filter(|one| one.outcome == outcome).count();
    text + &format!(
        "{} ok, {} warn, {} fail\n",
        count(Outcome::Ok),
        count(Outcome::Warn),
        count(Outcome::Fail)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings_of(file: &str, options: &str) -> Vec<Finding> {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("etc/scx_sfs");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("config.toml"), file).unwrap();
        let options: Vec<OsString> = options.split_whitespace().map(Into::into).collect();
        findings(root.path(), &options)
    }

    #[test]
    fn the_configuration_is_checked_and_used() {
        let all = findings_of("cgroup = [\"f/*\"]\n", "");
        assert_eq!(
            (all[0].check, all[0].outcome),
            ("configuration", Outcome::Ok)
        );
        assert!(
            all.iter()
                .any(|one| one.found == "no cgroup matches f/* now"),
            "{all:#?}"
        );
        let all = findings_of("", "--cgroup g/*");
        assert!(
            all.iter()
                .any(|one| one.found == "no cgroup matches g/* now"),
            "{all:#?}"
        );
        for (file, options, said) in [
            (
                "\ncgroups = 1\n",
                "",
                "config.toml:2: there is no key cgroups; is cgroup meant?",
            ),
            ("", "--slice-us 0", "'--slice-us <US>'"),
            ("", "--monitor 1", "would not schedule"),
        ] {
            let all = findings_of(file, options);
            assert_eq!(all[0].outcome, Outcome::Fail);
            assert!(all[0].found.contains(said), "{:?}", all[0]);
            assert!(all.len() > 10, "the other checks are missing: {all:#?}");
        }
    }

    #[test]
    fn text_keeps_to_the_width_and_counts() {
        let long = "a word and another word ".repeat(12);
        let all = [
            Finding::ok("one", long.clone()),
            Finding::warn("a longer one", "bad", long.clone()),
            Finding::fail("three", "worse\nforged", "do"),
        ];
        for columns in [80, 120] {
            let text = text_of(&all, columns, Paint::Plain);
            assert!(
                text.lines().all(|line| line.chars().count() <= columns),
                "{text}"
            );
            assert!(text.ends_with("\n1 ok, 1 warn, 1 fail\n"), "{text}");
            let starts = text.lines().filter(|line| !line.starts_with(' ')).count();
            assert_eq!(starts, 4, "{text}");
        }
        let coloured = text_of(&all, 80, Paint::Coloured);
        assert!(
            coloured.contains("\u{1b}[31mfail\u{1b}[0m  three"),
            "{coloured}"
        );
    }
}
