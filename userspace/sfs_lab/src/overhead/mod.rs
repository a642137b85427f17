//! Measures what scx_sfs itself costs, in VMs, and prints it as tables in Markdown.
//!
//! Times are those of emulated CPUs in virtual time: a nanosecond is an instruction, and the
//! same build gives the same figures. `sfs_guest overhead` is the guest's side.

mod guest;
mod objects;
mod programs;
mod replay;
pub mod table;

use anyhow::Result;
use clap::{value_parser, Args, Subcommand};
use guest::Lab;
use sfs_jobs::failure::{refuse, Failure};
use sfs_jobs::job;
use sfs_jobs::progress::Progress;
use sfs_jobs::signals::Interrupt;
use sfs_jobs::tree::Tree;
use std::io::Write;
use std::path::PathBuf;

/// Programs in one guest keep one emulator busy up to so many CPUs.
const BUSY_CPUS: u32 = 8;

/// Memory that one emulated CPU leaves to others, of 2 GiB.
const MEMORY_GIB: u32 = 2;

/// The options, most of which may also be given as environment variables.
#[derive(Debug, Args)]
pub struct OverheadArgs {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    common: Common,
}

/// A number of things: 1 to 9,999,999.
fn number() -> clap::builder::RangedI64ValueParser<u32> {
    value_parser!(u32).range(1..=9_999_999)
}

#[derive(Debug, Subcommand)]
enum What {
    /// All programs while Table I is replayed at load 1.0, scale 0.25; needs bpftool
    Trace {
        /// Number of invocations
        #[arg(default_value = "400", value_parser = number())]
        n: u32,
    },
    /// Each program by the number of CPUs, with processes of 1 ms
    ///
    /// Two at a time, and four for each CPU (not on more than 8 CPUs, which one emulator
    /// cannot keep busy).
    Cpus {
        /// The numbers of CPUs, 1 to 255
        #[arg(default_value = "1 4 16 64", value_delimiter = ' ', value_parser = value_parser!(u32).range(1..=255))]
        counts: Vec<u32>,
    },
    /// Each program by the tasks that wait: in FILTER, in FAIR, and by rank
    ///
    /// On one CPU, so that nothing but the program is counted.
    Queue {
        /// The numbers of tasks
        #[arg(default_value = "1 100 10000", value_delimiter = ' ', value_parser = number())]
        lengths: Vec<u32>,
    },
    /// Memory for each task, and time to load and unload; needs bpftool
    Tasks {
        /// Number of tasks
        #[arg(default_value = "50000", value_parser = number())]
        n: u32,
    },
    /// Memory for each sandbox; needs bpftool
    Sandboxes {
        /// Number of sandboxes
        #[arg(default_value = "2000", value_parser = number())]
        n: u32,
    },
    /// CPU time of the loader; needs bpftool
    Loader {
        /// Arrivals a second, for 10 s
        #[arg(default_value = "10000", value_parser = number())]
        rate: u32,
    },
}

/// Settings of all measurements.
#[derive(Debug, Args)]
struct Common {
    /// The kernel: a version that vm/fetch-kernel knows, or an image
    #[arg(long, env = "KERNEL", value_name = "KERNEL", global = true)]
    kernel: Option<String>,
    /// Options of scx_sfs, separated by spaces
    #[arg(
        long,
        env = "ARGS",
        value_name = "OPTIONS",
        default_value = "",
        allow_hyphen_values = true,
        global = true
    )]
    args: String,
    /// Where the figures go, from the top of the repository
    #[arg(
        long,
        env = "OUT",
        value_name = "DIR",
        default_value = "out/overhead",
        global = true
    )]
    out: PathBuf,
    /// trace: CPUs of the VM
    #[arg(long, env = "CPUS", value_name = "CPUS", default_value = "4", value_parser = value_parser!(u32).range(1..=255), global = true)]
    cpus: u32,
    /// trace: what serves the invocations, as for `faasbench run`
    #[arg(
        long,
        env = "SANDBOX",
        value_name = "SANDBOX",
        default_value = "process",
        global = true
    )]
    sandbox: String,
    /// cpus: seconds of real time after which a guest is given up
    #[arg(long, env = "TIMEOUT", value_name = "TIMEOUT", default_value = "3600", value_parser = number(), global = true)]
    timeout: u32,
}

/// Measures, and prints the tables; returns the exit status.
///
/// # Errors
/// If a program is missing, if the guest fails, which it has said then, or if what it left
/// cannot be read; and [`Failure::Interrupted`].
pub fn run(tree: &Tree, args: OverheadArgs, interrupt: &Interrupt) -> Result<u8> {
    let OverheadArgs { what, common } = args;
    let needs_bpftool = !matches!(what, What::Cpus { .. } | What::Queue { .. });
    let progress = Progress::new("overhead");
    let lab = Lab::new(
        tree,
        &common.out,
        common.kernel.as_deref(),
        needs_bpftool,
        interrupt,
        &progress,
    )?;
    let options = &common.args[..];
    let text = match what {
        What::Trace { n } => trace(&lab, &common, n)?,
        What::Cpus { counts } => cpus(&lab, &common, &counts)?,
        What::Queue { lengths } => queue(&lab, options, &lengths)?,
        What::Tasks { n } => {
            // A thread takes some 25 kB.
            let memory = format!("{}G", MEMORY_GIB + n / 40_000);
            lab.guest(
                "tasks",
                &["--mem", &memory],
                &["tasks", options, &n.to_string()],
            )?;
            objects::growth(&lab, "tasks", n)?
        }
        What::Sandboxes { n } => {
            lab.guest("sandboxes", &[], &["sandboxes", options, &n.to_string()])?;
            objects::growth(&lab, "sandboxes", n)?
        }
        What::Loader { rate } => {
            let command = ["--one-cpu", "loaders", &rate.to_string(), options];
            lab.guest("loader", &["--cpus", "2"], &command)?;
            replay::loader(&lab)?
        }
    };
    // That nobody reads it is no error.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(0)
}

fn cpus(lab: &Lab, common: &Common, counts: &[u32]) -> Result<String> {
    let timeout = common.timeout.to_string();
    for count in counts {
        let name = format!("cpus.{count}");
        // Where tasks may use one CPU only, each has its queue; so one of two.
        let machine = (*count).max(2).to_string();
        let command = ["--one-cpu", "cpus", &common.args];
        let command = if *count == 1 {
            &command[..]
        } else {
            &command[1..]
        };
        lab.guest(&name, &["--timeout", &timeout, "--cpus", &machine], command)?;
    }
    let table = |title: &str, kind: &str, counts: &[u32]| {
        let files = counts
            .iter()
            .map(|count| lab.left(&format!("cpus.{count}"), &format!("{kind}.{count}")));
        let columns = counts.iter().map(|count| format!("{count} CPUs"));
        let files = files.collect::<Result<Vec<_>>>()?;
        Ok::<_, anyhow::Error>(
            table::header(title, columns) + &programs::costs("sfs_init_task", &files),
        )
    };
    let mut text = table("us each, two invocations", "few", counts)?;
    let busy: Vec<u32> = counts
        .iter()
        .copied()
        .filter(|count| *count <= BUSY_CPUS)
        .collect();
    if !busy.is_empty() {
        text += "\n";
        text += &table("us each, all CPUs busy", "cpus", &busy)?;
    }
    Ok(text)
}

fn queue(lab: &Lab, options: &str, lengths: &[u32]) -> Result<String> {
    // A thread takes some 45 kB.
    let most = lengths.iter().max().copied().unwrap_or(0);
    let memory = format!("{}G", MEMORY_GIB + most / 20_000);
    let words: Vec<String> = lengths.iter().map(u32::to_string).collect();
    let mut command = vec!["--one-cpu", "queue", options];
    command.extend(words.iter().map(String::as_str));
    lab.guest("queue", &["--cpus", "2", "--mem", &memory], &command)?;
    let mut tables = Vec::new();
    for queue in ["FILTER", "FAIR", "rank"] {
        let files = words
            .iter()
            .map(|length| lab.left("queue", &format!("{queue}.{length}")));
        let files = files.collect::<Result<Vec<_>>>()?;
        let columns = words.iter().map(|length| format!("{length} waiting"));
        let head = table::header(&format!("{queue}, us each"), columns);
        tables.push(head + &programs::costs("sfs_running", &files));
    }
    Ok(tables.join("\n"))
}

fn trace(lab: &Lab, common: &Common, invocations: u32) -> Result<String> {
    let trace = common.out.join("trace.csv");
    let (cpus, n) = (common.cpus.to_string(), invocations.to_string());
    let faasbench = lab.tree.program("faasbench");
    let out = lab.tree.at(&common.out);
    if let Err(error) = std::fs::create_dir_all(&out) {
        refuse!(
            "cannot make the folder OUT={}: {error}",
            common.out.display()
        );
    }
    let mut generate = job::call(lab.tree, faasbench);
    generate
        .args([
            "gen",
            "table1-artefact",
            "--invocations",
            &n,
            "--scale",
            "0.25",
        ])
        .args(["--cpus", &cpus, "--seed", "5", "-o"])
        .arg(&trace);
    match job::run(&mut generate)? {
        0 => {}
        status => {
            return Err(Failure::Program("faasbench gen".into(), u8::try_from(status)?).into())
        }
    }
    let brought = format!("{}:/trace.csv", trace.display());
    let mut command = vec!["trace", &common.sandbox];
    if !common.args.is_empty() {
        command.extend(["--scheduler-args", &common.args]);
    }
    lab.guest("trace", &["--cpus", &cpus, "--in", &brought], &command)?;
    replay::trace(lab, common.cpus)
}
