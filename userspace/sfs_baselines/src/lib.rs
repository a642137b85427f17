//! What a sceptic compares scx_sfs with, on the same traces, and the page that has the table.
//!
//! The results are those of [`sfs_lab::bench`], in `out/baselines`: one folder for each
//! [`Case`], in it one for each seed. The important rows are measured with all seeds, the
//! others with the first.

#![forbid(unsafe_code)]

mod page;

use anyhow::Result;
use clap::Parser;
use sfs_jobs::failure::{conclude, refuse};
use sfs_jobs::options::parse;
use sfs_jobs::progress::Progress;
use sfs_jobs::signals::Interrupt;
use sfs_jobs::tree::Tree;
use sfs_lab::bench::args::VmArgs;
use sfs_lab::bench::series::{self, Seeds, Series};
use sfs_lab::bench::settings::{Size, Source, Workload};
use sfs_lab::bench::{rows, Outcome, Row, Settings, TROUBLED};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The folder of the results.
const OUT: &str = "out/baselines";

/// The row that all are compared with.
const BASE: &str = "eevdf";

/// The rows of scx_sfs: without an option, and with the paper's policy.
const OURS: [&str; 2] = ["scx_sfs", "scx_sfs+sfs"];

/// One trace for each seed.
struct Case {
    /// The name of its folder.
    name: &'static str,
    /// What it is, for the page.
    about: &'static str,
    load: &'static str,
    options: &'static str,
}

const CASES: [Case; 4] = [
    Case {
        name: "table1-1.0",
        about: "Table I, Poisson arrivals, load 1.0",
        load: "1.0",
        options: "",
    },
    Case {
        name: "bursty-1.0",
        about: "Table I, bursty arrivals, load 1.0",
        load: "1.0",
        options: "--arrivals bursty",
    },
    Case {
        name: "table1-0.8",
        about: "Table I, Poisson arrivals, load 0.8",
        load: "0.8",
        options: "",
    },
    Case {
        name: "fixed-1.0",
        about: "Table I as fixed work, Poisson arrivals, load 1.0",
        load: "1.0",
        options: "--work chase-32k,sum-1m,branch-32k,chase-1m,sum-8m,branch-8m,chase-8m",
    },
];

/// A row of the table.
struct Baseline {
    row: &'static str,
    /// Options of a sched_ext scheduler.
    args: &'static str,
    /// Whether it is measured with all seeds.
    important: bool,
}

const fn important(row: &'static str, args: &'static str) -> Baseline {
    Baseline {
        row,
        args,
        important: true,
    }
}

const fn other(row: &'static str, args: &'static str) -> Baseline {
    Baseline {
        row,
        args,
        important: false,
    }
}

/// All rows, the base first. The options of peers are those that scx_loader 1.1.3 gives them
/// for servers (docs/baselines.md).
const BASELINES: [Baseline; 29] = [
    important(BASE, ""),
    important(OURS[0], ""),
    important(OURS[1], "--policy sfs"),
    important("renice", ""),
    important("idle", ""),
    important("sfs-user", ""),
    important("cfs", ""),
    important("idle(steps=4)", ""),
    other("renice(steps=4)", ""),
    other("idle(after=20ms)", ""),
    other("idle(after=50ms)", ""),
    other("idle(after=50ms;steps=4)", ""),
    other("renice(after=50ms)", ""),
    other("sfs-user(poll=1ms)", ""),
    other("eevdf(slice=3ms)", ""),
    other("eevdf(slice=10ms)", ""),
    other("eevdf(slice=30ms)", ""),
    other("eevdf(task-slice=10ms)", ""),
    other("eevdf(task-slice=100ms)", ""),
    other("eevdf(preempt=none)", ""),
    other("eevdf(preempt=voluntary)", ""),
    other("eevdf(preempt=full)", ""),
    other("fifo", ""),
    other("scx_bpfland", ""),
    other("scx_bpfland+server", "-s 20000 -S"),
    other("scx_cosmos", ""),
    other("scx_flash", ""),
    other("scx_lavd", ""),
    other(
        "scx_lavd+server",
        "--performance --slice-min-us 3000 --slice-max-us 10000 --pinned-slice-us 3000",
    ),
];

/// Compares scx_sfs with what a sceptic asks for, and writes docs/baselines.md: `make baselines`
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "Peers that `make peers` has not built are left out. An interrupted run goes on with the same command.\n\
        Exit status: as of `bench`."
)]
pub struct Cli {
    /// Only these rows, beside eevdf and scx_sfs (default: all)
    #[arg(value_name = "ROW")]
    rows: Vec<String>,
    /// Only these cases (default: all; --list names them)
    #[arg(long, value_name = "CASE")]
    case: Vec<String>,
    /// Seeds of the important rows: 1 to this
    #[arg(long, env = "SEEDS", value_name = "N", default_value = "3", value_parser = clap::value_parser!(u64).range(1..=99))]
    seeds: u64,
    /// Number of invocations
    #[arg(short = 'n', long, env = "N", value_name = "N", default_value = "300")]
    invocations: String,
    /// Prints rows and cases
    #[arg(long)]
    list: bool,
    /// Measures nothing, and writes the table of what there is into docs/baselines.md
    #[arg(long)]
    publish: bool,
    #[command(flatten)]
    vms: VmArgs,
}

/// The program: parses the command line, does what it says, and says what went wrong.
pub fn main() -> ExitCode {
    let args: Cli = parse();
    conclude("baselines", run(&args))
}

/// Measures what is missing, and writes the page; returns the exit status.
fn run(args: &Cli) -> Result<u8> {
    if args.list {
        list();
        return Ok(0);
    }
    let interrupt = &Interrupt::catch()?;
    let tree = &Tree::find()?;
    let cases = chosen(&args.case)?;
    let progress = Progress::new("baselines");
    let mut status = 0;
    if !args.publish {
        let asked = asked(&args.rows)?;
        let there: Vec<&Baseline> = asked
            .into_iter()
            .filter(|one| is_there(tree, one, &progress))
            .collect();
        // The important ones of all cases before the others of any.
        for seeds in [args.seeds, 1] {
            for case in &cases {
                let is_due = |one: &&&Baseline| one.important || seeds == 1;
                let rows = there.iter().filter(is_due).map(|one| row(one)).collect();
                let series = series(case, rows, seeds, args)?;
                if series::run(tree, &series, interrupt)? != Outcome::Clean {
                    status = TROUBLED;
                }
            }
        }
    }
    page::publish(tree, &tree.at(OUT))?;
    progress.say(&format!("the table is in {}", page::PAGE));
    Ok(status)
}

fn list() {
    let rows = BASELINES.iter().map(|one| (one.row, one.args));
    let cases = CASES.iter().map(|case| (case.name, case.about));
    let lines = rows
        .chain(cases)
        .map(|(name, about)| format!("{name}  {about}"));
    let lines: Vec<String> = lines.map(|line| line.trim_end().to_string()).collect();
    println!("{}", lines.join("\n"));
}

/// The cases of these names; all without a name.
fn chosen(names: &[String]) -> Result<Vec<&'static Case>> {
    if let Some(name) = names
        .iter()
        .find(|name| CASES.iter().all(|case| case.name != **name))
    {
        let known: Vec<&str> = CASES.iter().map(|case| case.name).collect();
        refuse!("'{name}' is none of {}", known.join(", "));
    }
    let is_chosen = |case: &&Case| names.is_empty() || names.iter().any(|name| name == case.name);
    Ok(CASES.iter().filter(is_chosen).collect())
}

/// The rows of these names, beside the base and ours; all without a name.
fn asked(names: &[String]) -> Result<Vec<&'static Baseline>> {
    if let Some(name) = names
        .iter()
        .find(|name| BASELINES.iter().all(|one| one.row != **name))
    {
        refuse!("'{name}' is no row; --list names them");
    }
    let is_asked = |one: &&Baseline| {
        names.is_empty()
            || one.row == BASE
            || OURS.contains(&one.row)
            || names.iter().any(|name| name == one.row)
    };
    Ok(BASELINES.iter().filter(is_asked).collect())
}

fn row(one: &Baseline) -> Row {
    Row {
        name: one.row.to_string(),
        args: (!one.args.is_empty()).then(|| one.args.to_string()),
        ..Row::default()
    }
}

/// Whether the row can be measured here; says so if not.
fn is_there(tree: &Tree, one: &Baseline, progress: &Progress) -> bool {
    match rows::servers(tree, &[row(one)]) {
        Ok(_) => true,
        Err(error) => {
            progress.say(&format!("{} is left out: {error}", one.row));
            false
        }
    }
}

fn series(case: &Case, rows: Vec<Row>, seeds: u64, args: &Cli) -> Result<Series> {
    let workload = Workload {
        name: "table1".to_string(),
        invocations: args.invocations.clone(),
        load: case.load.to_string(),
        size: Size::Scale("0.25".to_string()),
        seed: "1".to_string(),
        options: case.options.to_string(),
    };
    let mut settings = Settings::new(rows, Source::Generated(workload));
    settings.out = Path::new(OUT).join(case.name);
    args.vms.apply(&mut settings);
    let seeds: Result<Seeds, String> = format!("1-{seeds}").parse();
    let Ok(seeds) = seeds else {
        refuse!("there are no seeds 1 to {}", args.seeds);
    };
    Ok(Series {
        settings,
        seeds,
        loads: Default::default(),
        jitter: None,
        trim: None,
    })
}

/// The folders of the cases that have results, in order.
fn folders(out: &Path) -> Vec<(&'static Case, PathBuf)> {
    let all = CASES.iter().map(|case| (case, out.join(case.name)));
    all.filter(|(_, folder)| folder.is_dir()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use faas_baselines::name::Named;

    #[test]
    fn the_definition_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn each_row_is_a_row_of_its_own_and_can_be_read() {
        let mut names: Vec<&str> = BASELINES.iter().map(|one| one.row).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), BASELINES.len());
        for one in &BASELINES {
            let row = row(one);
            assert!(Named::parse(row.given()).is_ok(), "{}", one.row);
            assert_eq!(row.label().is_some(), !one.args.is_empty(), "{}", one.row);
        }
        assert_eq!(BASELINES[0].row, BASE);
    }

    #[test]
    fn base_and_ours_are_always_there() {
        let names = |asked: &[&str]| -> Vec<&str> {
            let asked: Vec<String> = asked.iter().map(|name| name.to_string()).collect();
            super::asked(&asked)
                .unwrap()
                .iter()
                .map(|one| one.row)
                .collect()
        };
        assert_eq!(names(&["idle"]), [BASE, OURS[0], OURS[1], "idle"]);
        assert_eq!(names(&[]).len(), BASELINES.len());
        assert!(asked(&["x".to_string()]).is_err());
        assert!(chosen(&["x".to_string()]).is_err());
    }
}
