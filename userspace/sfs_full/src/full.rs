//! `make test-full`: everything that tests scx_sfs, in parts. It takes longer than anybody waits,
//! so the result of each part is kept with the code that it is about, and the same command goes
//! on where the last one ended.

use crate::code::Code;
use crate::kept::{Kept, Outcome, Row};
use crate::part::{self, Part};
use crate::table;
use anyhow::{Context, Result};
use clap::Args;
use sfs_jobs::failure::refuse;
use sfs_jobs::job::{self, Job};
use sfs_jobs::progress::Progress;
use sfs_jobs::signals::Interrupt;
use sfs_jobs::tree::Tree;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Exit status: a part failed.
const FAILED: u8 = 1;

/// Exit status: no part failed, and some have no result for this code.
const MISSING: u8 = 3;

/// How often the line about the running part is written anew.
const SHOW: Duration = Duration::from_millis(500);

/// The results, from the top of the repository. They are part of it, so a clone goes on where
/// another one ended.
const RESULTS: &str = "docs/test-full.csv";

/// The page with the table, from the top of the repository.
const PAGE: &str = "docs/reliability.md";

/// The options.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 all parts have passed; 1 one failed; 2 bad usage; 3 some have no result for this code; 130 interrupted."
)]
pub struct FullArgs {
    /// Parts to run instead of all; a trailing * stands for anything
    #[arg(value_name = "PART")]
    parts: Vec<String>,
    /// Begins no part after so many minutes
    #[arg(long, env = "MINUTES", value_name = "M", value_parser = clap::value_parser!(u32).range(1..100_000))]
    minutes: Option<u32>,
    /// Runs only parts without any result, even of older code
    #[arg(long)]
    never_run: bool,
    /// Runs failed parts again, though the code has not changed
    #[arg(long)]
    again: bool,
    /// Runs nothing: prints the parts and what is known of each
    #[arg(long)]
    list: bool,
    /// Runs nothing: writes the table into docs/reliability.md
    #[arg(long)]
    table: bool,
    /// The folder that keeps what each part said, from the top of the repository
    #[arg(long, env = "OUT", value_name = "DIR", default_value = "out/full")]
    out: PathBuf,
}

/// Runs the parts that have no result for the present code, and writes the table; returns the
/// exit status.
///
/// # Errors
/// If there are changes that are not committed, if no part has the name, if results cannot be
/// read or kept, and [`sfs_jobs::failure::Failure::Interrupted`]. The results of parts that have
/// ended are kept in any case.
pub fn run(tree: &Tree, args: &FullArgs, interrupt: &Interrupt) -> Result<u8> {
    let code = Code::of(tree)?;
    let parts = part::all(&cases(tree)?, code.seed());
    let mut kept = Kept::read(&tree.at(RESULTS))?;
    let chosen = part::choose(&parts, &args.parts)?;
    if args.list {
        print(&table::list(&chosen, &kept, &code));
    } else if args.table {
        table::write(&tree.at(PAGE), &table::markdown(&parts, &kept, &code))?;
    } else {
        let full = Full {
            tree,
            args,
            interrupt,
            progress: Progress::new("full"),
            code: code.committed()?,
        };
        full.run(&chosen, &mut kept)?;
        table::write(&tree.at(PAGE), &table::markdown(&parts, &kept, &code))?;
        return Ok(full.conclude(&chosen, &kept));
    }
    Ok(0)
}

/// The names of all cases of the behaviour suite.
fn cases(tree: &Tree) -> Result<Vec<String>> {
    let program = tree.program("sfs_behaviour");
    if !tree.is_program(&program) {
        refuse!("{} is not built; run make first", program.display());
    }
    let mut list = job::call(tree, program);
    let output = list.arg("--list").output();
    let output = output.context("cannot run sfs_behaviour")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let names = said.lines().filter_map(|line| line.split(' ').next());
    Ok(names.map(str::to_string).collect())
}

/// Prints a text. That nobody reads it is no reason to stop.
fn print(text: &str) {
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

struct Full<'a> {
    tree: &'a Tree,
    args: &'a FullArgs,
    interrupt: &'a Interrupt,
    progress: Progress,
    code: &'a Code,
}

impl Full<'_> {
    /// Runs the parts that are due, those that have never run first.
    fn run(&self, chosen: &[&Part], kept: &mut Kept) -> Result<()> {
        let (never, other): (Vec<&Part>, Vec<&Part>) = chosen
            .iter()
            .partition(|part| kept.row(&part.name).is_none());
        let again = |part: &&Part| self.is_due(part, kept);
        let due: Vec<&Part> = match self.args.never_run {
            true => never,
            false => never
                .into_iter()
                .chain(other.into_iter().filter(again))
                .collect(),
        };
        let minutes = self.args.minutes.map_or(u64::MAX, u64::from);
        let since = Instant::now();
        for (index, part) in due.iter().enumerate() {
            if since.elapsed().as_secs() / 60 >= minutes {
                let rest = due.len() - index;
                self.progress.say(&format!(
                    "{minutes} minutes are over; {rest} parts are left"
                ));
                break;
            }
            let place = format!("{} of {}", index + 1, due.len());
            let row = self.execute(part, &place)?;
            self.progress.say(&row.sentence());
            kept.put(row)?;
        }
        Ok(())
    }

    /// Whether the result of a part that has one does not stand.
    fn is_due(&self, part: &Part, kept: &Kept) -> bool {
        let present = kept.present(part, self.code);
        present.is_none_or(|row| match row.outcome {
            Outcome::Passed => false,
            Outcome::Failed => self.args.again,
            Outcome::Skipped => true,
        })
    }

    /// Runs a part to its end.
    fn execute(&self, part: &Part, place: &str) -> Result<Row> {
        self.progress.say(&format!("{place}: {}", part.name));
        let said = |end| {
            let file = format!("{}{end}", part.name.replace(['/', ':'], "-"));
            self.tree.at(&self.args.out).join(file)
        };
        let out = self.tree.at(&self.args.out);
        std::fs::create_dir_all(&out)
            .with_context(|| format!("cannot make the folder {}", out.display()))?;
        let create = |end| {
            let path = said(end);
            File::create(&path).with_context(|| format!("cannot write {}", path.display()))
        };
        let mut command = part.call(self.tree);
        let since = Instant::now();
        let mut job = Job::start(command.stdout(create("")?).stderr(create(".err")?))?;
        let status = job.wait_and(self.interrupt, SHOW, || {
            let seconds = since.elapsed().as_secs();
            self.progress
                .show(&format!("{place}: {} ({seconds} s)", part.name));
        });
        self.progress.clear();
        let status = status?;
        let read = |end| {
            let path = said(end);
            let bytes =
                std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            Ok::<_, anyhow::Error>(String::from_utf8_lossy(&bytes).into_owned())
        };
        Ok(Row {
            part: part.name.clone(),
            code: self.code.id(part.about).into(),
            commit: self.code.commit.clone(),
            seconds: since.elapsed().as_secs(),
            ..Row::parse(part.outcome(status), &read("")?, &read(".err")?)
        })
    }

    /// Says which parts failed and which have no result for this code; returns the exit status.
    fn conclude(&self, chosen: &[&Part], kept: &Kept) -> u8 {
        let names = |wanted: fn(Option<Outcome>) -> bool| -> Vec<&str> {
            let outcome = |part: &Part| Some(kept.present(part, self.code)?.outcome);
            let wanted = chosen.iter().filter(|part| wanted(outcome(part)));
            wanted.map(|part| part.name.as_str()).collect()
        };
        let missing = names(|outcome| outcome.is_none());
        let failed = names(|outcome| outcome == Some(Outcome::Failed));
        for (what, names) in [("failed", &failed), ("no result for this code", &missing)] {
            if !names.is_empty() {
                self.progress.say(&format!("{what}: {}", names.join(" ")));
            }
        }
        let skipped = names(|outcome| outcome == Some(Outcome::Skipped));
        let passed = chosen.len() - missing.len() - failed.len() - skipped.len();
        print(&format!(
            "{passed} parts passed, {} failed, {} skipped, {} missing\n",
            failed.len(),
            skipped.len(),
            missing.len()
        ));
        match (failed.is_empty(), missing.is_empty()) {
            (false, _) => FAILED,
            (true, false) => MISSING,
            (true, true) => 0,
        }
    }
}
