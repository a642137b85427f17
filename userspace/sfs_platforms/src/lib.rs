//! Runs real function platforms in VMs, under EEVDF and under scx_sfs: `make platforms`.
//!
//! This crate owns the host's part. It makes the archive with Python and the platforms'
//! packages ([`python`]), the trace, a VM for each scheduler (`vm/run`), and the report
//! (`faasbench report`). The guest's part is the scripts in `vm/platforms/guest/`.

#![forbid(unsafe_code)]

mod cache;
pub mod cli;
mod guests;
mod platform;
pub mod python;
mod rows;
mod run;
mod settings;
mod trace;

use sfs_jobs::failure::Failure;
use sfs_jobs::job::Job;
use sfs_jobs::progress::Progress;
use sfs_jobs::signals::Interrupt;
use std::process::Command;

/// Says a line on standard error as the program `name`, unless the environment has `QUIET`.
fn say(name: &'static str, text: &str) {
    if std::env::var_os("QUIET").is_none_or(|quiet| quiet.is_empty()) {
        Progress::new(name).say(text);
    }
}

/// Runs a program that says itself what went wrong.
fn succeed(name: &str, command: &mut Command, interrupt: &Interrupt) -> anyhow::Result<()> {
    match Job::start(command)?.wait(interrupt)? {
        0 => Ok(()),
        status => Err(Failure::of_program(name, status).into()),
    }
}
