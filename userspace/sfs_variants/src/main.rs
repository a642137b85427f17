//! The kernel half in the model, with more than its source: `make coverage`, `make sanitize`,
//! `make mutants`; and one of the past: `make past`.

#![forbid(unsafe_code)]

use anyhow::Result;
use clap::builder::FalseyValueParser;
use clap::{Parser, Subcommand};
use sfs_jobs::tree::Tree;
use sfs_variants::campaign::{Campaign, Plan};
use sfs_variants::coverage::{self, Tools};
use sfs_variants::model::{commit, Model};
use sfs_variants::past::{self, Half};
use sfs_variants::{llvm, report, runs, sanitize};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Where the tables stand.
const DOCUMENT: &str = "docs/model.md";

/// Runs variants of the kernel half in the model of the kernel: with coverage, with sanitizers, or
/// with a defect each.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
struct Options {
    /// Another folder with the sources of the kernel half
    #[arg(long, value_name = "FOLDER", global = true)]
    kernel_half: Option<PathBuf>,
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Print what seeds reach of the kernel half, and what they do not
    Coverage {
        /// Seeds, from 1 on
        #[arg(long, env = "SEEDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=100_000))]
        seeds: u64,
        /// Write the table into docs/model.md as well
        #[arg(long, env = "WRITE", value_parser = FalseyValueParser::new())]
        write: bool,
    },
    /// Run seeds with the sanitizers of addresses and of undefined behaviour
    Sanitize {
        /// Seeds, from 1 on
        #[arg(long, env = "SEEDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=100_000))]
        seeds: u64,
    },
    /// Run seeds with the kernel half of a past commit, and print which of its defects they show
    Past {
        /// The commit
        #[arg(default_value = "989571b")]
        commit: String,
        /// Seeds, from 1 on
        #[arg(long, env = "SEEDS", default_value_t = 2500, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
        seeds: u64,
        /// Write the table into docs/model.md as well
        #[arg(long, env = "WRITE", value_parser = FalseyValueParser::new())]
        write: bool,
    },
    /// Run mutants of the kernel half, and print those that no run finds out
    ///
    /// Finished ones are kept in .cache/mutants: the same command goes on.
    Mutants {
        /// Mutants that compile and change the code
        #[arg(long, env = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        mutants: u32,
        /// The seed of the sample
        #[arg(long, env = "SEED", default_value_t = 1)]
        sample: u64,
        /// Seeds that each mutant runs, from 1 on
        #[arg(long, env = "SEEDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=100_000))]
        seeds: u64,
        /// The only file that is mutated, such as fair.bpf.h
        #[arg(long, env = "FILE")]
        file: Option<String>,
        /// Write the table into docs/model.md as well
        #[arg(long, env = "WRITE", value_parser = FalseyValueParser::new(), conflicts_with = "file")]
        write: bool,
        /// A folder for the results instead of .cache/mutants
        #[arg(long, value_name = "FOLDER")]
        results: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    match work(Options::parse()) {
        Ok(status) => status,
        Err(error) => {
            report::say(&format!("{error:#}"));
            ExitCode::from(2)
        }
    }
}

fn work(options: Options) -> Result<ExitCode> {
    let tree = Tree::find()?;
    let half = options.kernel_half.as_deref();
    match options.task {
        Task::Coverage { seeds, write } => {
            // Building takes minutes, so what is missing is named before.
            let tools = Tools::find(&compiler())?;
            let model = Model::build(&tree, half)?;
            covered(&tree, &model, &tools, seeds, write)
        }
        Task::Sanitize { seeds } => {
            llvm::runtime("asan", &compiler())?;
            sanitized(&Model::build(&tree, half)?, seeds)
        }
        Task::Past {
            commit,
            seeds,
            write,
        } => searched(&tree, Half::of(&commit)?, seeds, write),
        Task::Mutants {
            mutants,
            sample,
            seeds,
            file,
            write,
            results,
        } => {
            let plan = Plan {
                mutants: mutants as usize,
                sample,
                seeds,
                file,
            };
            let cache = std::env::var_os("SCX_SFS_CACHE").filter(|cache| !cache.is_empty());
            let cache = tree.at(PathBuf::from(cache.unwrap_or_else(|| ".cache".into())));
            let results = results.unwrap_or_else(|| cache.join("mutants"));
            mutated(&tree, &Model::build(&tree, half)?, &plan, &results, write)
        }
    }
}

/// The compiler of sfs_kernel_model's build.
fn compiler() -> String {
    std::env::var("BPF_CLANG").unwrap_or_else(|_| "clang".to_owned())
}

fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

fn covered(tree: &Tree, model: &Model, tools: &Tools, seeds: u64, write: bool) -> Result<ExitCode> {
    let folder = coverage::compile(model)?;
    let runs = runs::seeds_and_long(seeds);
    let files = coverage::reached(model, tools, folder.path(), &runs, false)?;
    let text = format!(
        "`make coverage SEEDS={seeds}`, commit {}:\n\n{}",
        commit(tree),
        coverage::table(&files)
    );
    print(&format!("{text}\n{}", coverage::gaps(&files)));
    if write {
        report::write_between(&tree.at(DOCUMENT), "coverage", &text)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn sanitized(model: &Model, seeds: u64) -> Result<ExitCode> {
    let reports = sanitize::check(model, &runs::seeds_and_long(seeds))?;
    for (what, runs) in &reports {
        print(&format!(
            "{what}; in {} runs, first in {}\n",
            runs.len(),
            runs[0]
        ));
    }
    print(&format!("{seeds} seeds, {} reports\n", reports.len()));
    Ok(ExitCode::from(u8::from(!reports.is_empty())))
}

fn searched(tree: &Tree, half: Half, seeds: u64, write: bool) -> Result<ExitCode> {
    // Building takes minutes, so a clone without the commit is told before.
    half.take_out(tree)?;
    let mut model = Model::build(tree, None)?;
    let library = half.compile(tree, &mut model, false)?;
    let fine = half.compile(tree, &mut model, true)?;
    let seen = past::search(&model, library.path(), fine.path(), seeds)?;
    let (seeds, events) = seen.sums();
    let text = format!(
        "`make past SEEDS={seeds}`, the kernel half of {} in the model of commit {}, {events} \
         events:\n\n{}",
        half.commit,
        commit(tree),
        seen.table()
    );
    print(&format!("{text}\nother findings:\n{}", seen.others()));
    if write {
        report::write_between(&tree.at(DOCUMENT), "past", &text)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn mutated(
    tree: &Tree,
    model: &Model,
    plan: &Plan,
    results: &std::path::Path,
    write: bool,
) -> Result<ExitCode> {
    let mut campaign = Campaign::new(model, plan, results)?;
    let tried = campaign.run(plan)?;
    let text = format!(
        "`make mutants N={} SEED={} SEEDS={}`, commit {}:\n\n{}",
        plan.mutants,
        plan.sample,
        plan.seeds,
        commit(tree),
        report::table(&tried)
    );
    print(&format!("{}\n{text}", report::survivors(&tried)));
    print(&format!("\nresults: {}\n", campaign.results().display()));
    if write {
        report::write_between(&tree.at(DOCUMENT), "mutants", &text)?;
    }
    Ok(ExitCode::SUCCESS)
}
