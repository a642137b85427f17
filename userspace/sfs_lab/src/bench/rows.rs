//! Checks the rows, and finds what serves each of them.

use super::settings::{variable, Row};
use crate::peers;
use anyhow::Result;
use faas_baselines::name::{is_row, Base, Named};
use sfs_jobs::failure::refuse;
use sfs_jobs::tree::{in_path, Tree};
use sfs_sim::policy::Kind;
use std::collections::HashSet;
use std::path::PathBuf;

/// Whether `name` is the kernel's own scheduling, steered by a daemon or not. `fifo` is its
/// real-time policy here, not the simulated one.
fn is_kernels(name: &str) -> bool {
    Base::find(name).is_some()
}

/// What serves the invocations of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Server {
    /// `sfs_sim`.
    Simulation(Kind),
    /// A policy of the kernel's own.
    Kernel,
    /// A sched_ext scheduler: the path of its program, from the repository's root.
    Program(PathBuf),
}

impl Server {
    /// Whether the row needs no VM.
    pub fn is_simulated(&self) -> bool {
        matches!(self, Self::Simulation(_))
    }
}

/// The simulated policies that can be rows.
fn simulated() -> impl Iterator<Item = Kind> {
    let all = Kind::ALL.into_iter();
    all.filter(|kind| !is_kernels(kind.name()))
}

/// `a, b and c`.
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_string(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

/// The schedulers that a row can have, in words.
pub fn known() -> String {
    format!(
        "{}, scx_NAME, and simulated {}",
        Base::ALL.map(Base::name).join(", "),
        listed(simulated().map(Kind::name))
    )
}

/// What serves each of these rows.
///
/// # Errors
/// One sentence on the first that cannot be run.
pub fn servers(tree: &Tree, rows: &[Row]) -> Result<Vec<Server>> {
    if rows.is_empty() {
        refuse!("SCHEDULERS names no scheduler");
    }
    let mut names = HashSet::new();
    let mut servers = Vec::new();
    for row in rows {
        servers.push(server(tree, row)?);
        let name = &row.name;
        if !names.insert(name) {
            refuse!("{name} stands in SCHEDULERS twice; a label tells rows apart, as {name}+again");
        }
    }
    Ok(servers)
}

/// Refuses rows whose settings in the environment would have one name.
///
/// # Errors
/// One sentence that names two such rows.
pub fn check_variables(rows: &[Row]) -> Result<()> {
    for (index, row) in rows.iter().enumerate() {
        let name = variable("ARGS", &row.name);
        let same = |other: &&Row| variable("ARGS", &other.name) == name && other.name != row.name;
        if let Some(other) = rows[..index].iter().find(same) {
            let (one, two) = (&other.name, &row.name);
            refuse!("the rows {one} and {two} would share {name}; change a label");
        }
    }
    Ok(())
}

fn server(tree: &Tree, row: &Row) -> Result<Server> {
    let (name, scheduler) = (&row.name, row.scheduler());
    if !is_row(name) {
        refuse!("'{name}' in SCHEDULERS is no row; want a scheduler, or one with a label as scx_sfs+short");
    }
    if let Err(error) = Named::parse(row.given()) {
        refuse!("{error}");
    }
    let kind = simulated().find(|kind| kind.name() == scheduler);
    let is_kernel = is_kernels(scheduler);
    if kind.is_some() {
        if row.given() != scheduler {
            refuse!("{scheduler} is simulated and has no settings of a kernel, as {name} names");
        }
        let sim = tree.program("sfs_sim");
        if !tree.is_program(&sim) {
            refuse!("{} is not built; run make first", sim.display());
        }
    } else if is_kernel {
        if row.label().is_some() || !row.args().is_empty() {
            let args = variable("ARGS", name);
            refuse!(
                "{scheduler} is part of the kernel and takes no options: no label and no {args}"
            );
        }
    } else if !name.starts_with("scx_") {
        refuse!(
            "unknown scheduler '{name}' in SCHEDULERS; known are {}",
            known()
        );
    }
    check_label(row)?;
    check_files(tree, row)?;
    Ok(match kind {
        Some(kind) => Server::Simulation(kind),
        None if is_kernel => Server::Kernel,
        None => Server::Program(program(tree, row)?),
    })
}

/// A row with a label that nothing sets apart would be the same row twice.
fn check_label(row: &Row) -> Result<()> {
    if row.label().is_some() && row.args.is_none() && row.program.is_none() {
        let (args, program) = (variable("ARGS", &row.name), variable("PROGRAM", &row.name));
        refuse!(
            "row {} has nothing of its own; set its options with {args}=\"...\", or its program with {program}=FILE",
            row.name
        );
    }
    Ok(())
}

/// The files that the row's guest is to have: on the host, and in the guest.
pub fn files(row: &Row) -> impl Iterator<Item = (&str, &str)> {
    let words = row.files.split_whitespace();
    words.map(|word| word.split_once(':').unwrap_or((word, "")))
}

fn check_files(tree: &Tree, row: &Row) -> Result<()> {
    let from = variable("FILES", &row.name);
    for (host, guest) in files(row) {
        if host.is_empty() || !guest.starts_with('/') {
            let word = format!("{host}:{guest}");
            let word = word.trim_end_matches(':');
            refuse!("{from} has '{word}'; want HOST:/GUEST");
        }
        let path = tree.at(host);
        if !path.is_file() || std::fs::File::open(path).is_err() {
            refuse!("cannot read {host}, from {from}");
        }
    }
    Ok(())
}

/// The program of a sched_ext scheduler.
fn program(tree: &Tree, row: &Row) -> Result<PathBuf> {
    if let Some(given) = row.program() {
        if !tree.is_program(given) {
            let from = variable("PROGRAM", &row.name);
            refuse!("{from}={} is no program", given.display());
        }
        return Ok(given.clone());
    }
    let name = row.scheduler();
    let ours = [tree.release().join(name), tree.peers().join(name)];
    if let Some(path) = ours.into_iter().find(|path| tree.is_program(path)) {
        return Ok(path);
    }
    if let Some(path) = in_path(name) {
        return Ok(path);
    }
    if peers::is_known(name) {
        refuse!("{name} is not built; run make peers, or make peers NAME={name} for it alone");
    }
    refuse!(
        "found no program {name}, neither in {}, in {} nor in PATH; build or install it",
        tree.release().display(),
        tree.peers().display()
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulated_rows_are_those_of_the_simulation_but_for_the_kernels_names() {
        let text = known();
        assert!(text.starts_with("eevdf, fifo, rr, batch, cfs, renice, idle, sfs-user, scx_NAME, "));
        assert!(text.contains(" and simulated ideal, srtf, "), "{text}");
        assert!(text.ends_with(", mean and mlfq"), "{text}");
        assert!(simulated().all(|kind| kind != Kind::Fifo));
        assert_eq!(simulated().count(), Kind::ALL.len() - 1);
    }

    #[test]
    fn lists_are_read_as_a_sentence() {
        assert_eq!(listed(["a"].into_iter()), "a");
        assert_eq!(listed(["a", "b", "c"].into_iter()), "a, b and c");
    }
}
