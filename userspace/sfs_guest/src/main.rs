//! The guest's half of `sfs_lab parity` and `sfs_lab overhead`: loads a scheduler, runs the
//! programs that are measured, and prints or writes what the host's half reads. It owns how a
//! guest is set up for that and which program measures which row; tables and results are the
//! host's. vm/run puts it into the guest, where it runs as root.

mod loader;
mod overhead;
mod parity;
mod programs;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The guest's half of the measurements of sfs_lab.
#[derive(Debug, Parser)]
#[command(version)]
struct Options {
    #[command(subcommand)]
    measurement: Measurement,
}

#[derive(Debug, Subcommand)]
enum Measurement {
    /// Runs rows under one scheduler and prints a line for each: row, value, unit; or row, -,
    /// and the reason.
    Parity(parity::ParityArgs),
    /// Measures what scx_sfs costs and leaves the figures as files in /out.
    Overhead(overhead::OverheadArgs),
}

fn main() -> ExitCode {
    let result = match Options::parse().measurement {
        Measurement::Parity(args) => parity::run(args),
        Measurement::Overhead(args) => overhead::run(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sfs_guest: {error:#}");
            ExitCode::FAILURE
        }
    }
}
