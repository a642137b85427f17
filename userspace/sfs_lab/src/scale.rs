//! `make scale`: what the kernel half costs on more and more CPUs, counted in the model.

use anyhow::{Context, Result};
use clap::Args;
use sfs_jobs::failure::{refuse, Failure};
use sfs_jobs::job::{self, Job};
use sfs_jobs::progress::Progress;
use sfs_jobs::signals::Interrupt;
use sfs_jobs::tree::Tree;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The CPUs that the traces are made for.
const TRACE_CPUS: &str = "4";

/// The traces: a name, and what makes them (`faasbench gen`).
const TRACES: [(&str, &str); 3] = [
    (
        "table1",
        "table1-artefact --invocations 200 --scale 0.25 --load 0.8",
    ),
    (
        "short",
        "exponential --invocations 300 --mean-ms 2 --load 0.9",
    ),
    (
        "overload",
        "exponential --invocations 300 --mean-ms 2 --load 1.3",
    ),
];

/// The options.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0; 2 bad usage; 130 interrupted.")]
pub struct ScaleArgs {
    /// Options of sfs_model scale, after --
    #[arg(last = true, value_name = "OPTION")]
    options: Vec<String>,
    /// The folder for traces, from the top of the repository
    #[arg(long, env = "OUT", value_name = "DIR", default_value = "out/scale")]
    out: PathBuf,
}

/// Makes the traces, and prints the tables of each; returns the exit status.
///
/// # Errors
/// If a trace cannot be made or replayed, which the program that does it has said then; and
/// [`Failure::Interrupted`].
pub fn run(tree: &Tree, args: &ScaleArgs, interrupt: &Interrupt) -> Result<u8> {
    let [generator, model] = ["faasbench", "sfs_model"].map(|name| tree.program(name));
    for program in [&generator, &model] {
        if !tree.is_program(program) {
            refuse!("{} is not built; run make first", program.display());
        }
    }
    let out = tree.at(&args.out);
    std::fs::create_dir_all(&out)
        .with_context(|| format!("cannot make the folder {}", out.display()))?;
    let progress = Progress::new("scale");
    for (name, how) in TRACES {
        let trace = args.out.join(format!("{name}.csv"));
        let mut generate = job::call(tree, &generator);
        generate.arg("gen").args(how.split(' '));
        generate
            .args(["--cpus", TRACE_CPUS, "--seed", "1", "-o"])
            .arg(&trace);
        finish(&mut generate, &generator, interrupt)?;
        progress.say(&format!("replays {name}"));
        progress.aside(|| println!("\n{name}: `faasbench gen {how}`\n"));
        let mut replay = job::call(tree, &model);
        replay
            .arg("scale")
            .arg(&trace)
            .args(["--trace-cpus", TRACE_CPUS]);
        finish(replay.args(&args.options), &model, interrupt)?;
    }
    Ok(0)
}

/// Runs a program to its end.
fn finish(command: &mut Command, program: &Path, interrupt: &Interrupt) -> Result<()> {
    match Job::start(command)?.wait(interrupt)? {
        0 => Ok(()),
        status => Err(Failure::of_program(&program.display().to_string(), status).into()),
    }
}
