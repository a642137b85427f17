//! The command line.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// The documentation as a book.
#[derive(Debug, Parser)]
#[command(
    version,
    max_term_width = 80,
    after_help = "\
Examples:
  sfs_book build
  sfs_book screens

Exit status: 0 done, and every link leads somewhere; 1 a broken link, or
another error; 2 wrong options."
)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Build the book of docs/SUMMARY.md, and check each link of it
    ///
    /// The exit status is 0 if every link leads somewhere, and 1 otherwise.
    Build {
        /// The repository
        #[arg(long, value_name = "FOLDER", default_value = ".")]
        top: PathBuf,
        /// The folder of the book, whose content is replaced
        #[arg(long, value_name = "FOLDER", default_value = "out/book")]
        out: PathBuf,
    },
    /// Take pictures of scx_sfs top and of a report, from a live run in a VM
    ///
    /// Needs the programs that make builds, and tmux. Writes top.svg and
    /// report.svg.
    Screens {
        /// The repository
        #[arg(long, value_name = "FOLDER", default_value = ".")]
        top: PathBuf,
        /// The folder of the pictures
        #[arg(long, value_name = "FOLDER", default_value = "docs/images")]
        out: PathBuf,
    },
}

/// Runs the program with the arguments of the process.
#[must_use]
pub fn main() -> ExitCode {
    let Options { command } = Options::parse();
    match run(command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("sfs_book: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Screens { top, out } => {
            crate::screen::take(&top, &out)?;
            println!("{0}/top.svg, {0}/report.svg", out.display());
            Ok(ExitCode::SUCCESS)
        }
        Command::Build { top, out } => {
            let chapters = crate::book::build(&top, &out)?;
            let found = crate::links::check(&out)?;
            for broken in &found.broken {
                eprintln!("sfs_book: {broken}");
            }
            let (links, wrong) = (found.links, found.broken.len());
            println!(
                "{}: {chapters} chapters, {links} links, {wrong} of them broken",
                out.join("index.html").display()
            );
            Ok(match wrong {
                0 => ExitCode::SUCCESS,
                _ => ExitCode::FAILURE,
            })
        }
    }
}
