//! `sfs_lab peers`: builds the sched_ext schedulers that scx_sfs is compared with. `bench`
//! and `parity` find them in the cache, in `peers/bin`.

use crate::lock;
use anyhow::{Context, Result};
use clap::Args;
use sfs_jobs::failure::refuse;
use sfs_jobs::job::Job;
use sfs_jobs::progress::Progress;
use sfs_jobs::signals::Interrupt;
use sfs_jobs::tree::Tree;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Exit status: a scheduler could not be built.
const FAILED: u8 = 1;
/// The peers share most of their libraries, which one folder builds once.
const TARGET: &str = "userspace/target/peers";
/// How many lines of cargo's are printed if it fails.
const LINES: usize = 5;

/// A scheduler.
struct Peer {
    name: &'static str,
    /// A version of the Rust crates registry.
    version: &'static str,
}

const PEERS: [Peer; 7] = [
    peer("scx_bpfland", "1.1.4"),
    peer("scx_flash", "1.1.4"),
    peer("scx_cosmos", "1.1.7"),
    peer("scx_rusty", "1.1.4"),
    peer("scx_p2dq", "1.1.4"),
    peer("scx_lavd", "1.1.4"),
    peer("scx_flow", "4.8.15"),
];

const fn peer(name: &'static str, version: &'static str) -> Peer {
    Peer { name, version }
}

/// The command line of `peers`.
#[derive(Debug, Args)]
#[command(
    after_help = "What is there in the version that --list prints is not built again. If one cannot be built, \
        the others still are. The output of cargo goes to .cache/peers/NAME.log. All of them take about ten \
        minutes on two cores.\n\
        Exit status: 0; 1 one could not be built; 2 bad usage; 130 interrupted."
)]
pub struct PeersArgs {
    /// The schedulers (default: all)
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Prints name, version, and whether it is built
    #[arg(long)]
    list: bool,
}

/// Whether `name` is one of these schedulers.
pub fn is_known(name: &str) -> bool {
    PEERS.iter().any(|peer| peer.name == name)
}

/// Builds what the options name, or lists it; returns the exit status.
///
/// # Errors
/// If there is no such scheduler, if another process builds some, if a file cannot be written or
/// cargo not be run; and [`sfs_jobs::failure::Failure::Interrupted`].
pub fn run(tree: &Tree, args: &PeersArgs, interrupt: &Interrupt) -> Result<u8> {
    let peers = named(&args.names)?;
    let root = tree.peers().parent().unwrap_or(tree.peers());
    let build = Build {
        tree,
        interrupt,
        root,
        progress: Progress::new("peers"),
    };
    match args.list {
        true => build.list(&peers),
        false => build.all(&peers),
    }
}

/// The peers of these names; all without a name.
fn named(names: &[String]) -> Result<Vec<&'static Peer>> {
    if names.is_empty() {
        return Ok(PEERS.iter().collect());
    }
    let mut peers = Vec::new();
    for name in names {
        let Some(peer) = PEERS.iter().find(|peer| peer.name == name) else {
            let known = PEERS.map(|peer| peer.name).join(" ");
            refuse!("'{name}' is none of {known}");
        };
        peers.push(peer);
    }
    Ok(peers)
}

struct Build<'a> {
    tree: &'a Tree,
    interrupt: &'a Interrupt,
    /// The folder for the schedulers, from the repository's root.
    root: &'a Path,
    progress: Progress,
}

impl Build<'_> {
    fn list(&self, peers: &[&Peer]) -> Result<u8> {
        for peer in peers {
            let state = match self.has(peer) {
                true => "built",
                false => "missing",
            };
            let _ = writeln!(std::io::stdout(), "{} {} {state}", peer.name, peer.version);
        }
        Ok(0)
    }

    /// Builds those that are missing.
    fn all(&self, peers: &[&Peer]) -> Result<u8> {
        let (here, shown) = (self.tree.at(self.root), self.root.display());
        if let Err(error) = fs::create_dir_all(&here) {
            refuse!("cannot make the folder {shown}: {error}");
        }
        let Some(_lock) = lock::take(&here.join("lock"))? else {
            refuse!("another build of the peers is at work in {shown}; wait for it");
        };
        let mut failed = Vec::new();
        for (index, peer) in peers.iter().enumerate() {
            let Peer { name, version } = peer;
            if self.has(peer) {
                let line = format!("{name} {version} is there already");
                self.progress.say(&line);
                continue;
            }
            let place = format!("{name} {version} ({} of {})", index + 1, peers.len());
            if !self.build(peer, &place)? {
                failed.push(*name);
            }
        }
        if !failed.is_empty() {
            let failed = failed.join(" ");
            self.progress
                .say(&format!("these could not be built: {failed}"));
            return Ok(FAILED);
        }
        let first = peers.first().map_or("", |peer| peer.name);
        self.progress.say(&format!(
            "all are in {shown}/bin; make bench SCHEDULERS=\"eevdf scx_sfs {first}\" compares them"
        ));
        Ok(0)
    }

    /// Whether cargo has finished installing this version.
    fn has(&self, peer: &Peer) -> bool {
        let installed = fs::read_to_string(self.tree.at(self.root.join(".crates.toml")));
        let line = format!("\"{} {} ", peer.name, peer.version);
        self.tree.is_program(self.tree.peers().join(peer.name))
            && installed.is_ok_and(|text| text.lines().any(|one| one.starts_with(&line)))
    }

    /// Builds one, called `place` in messages. Returns whether that succeeded.
    fn build(&self, peer: &Peer, place: &str) -> Result<bool> {
        let (progress, began) = (&self.progress, Instant::now());
        if !progress.is_watched() {
            progress.say(&format!("{place}: building"));
        }
        let log = self.root.join(format!("{}.log", peer.name));
        let mut job = Job::start(&mut self.cargo(peer, &log)?)?;
        let status = job.wait_and(self.interrupt, Duration::from_secs(1), || {
            let (crates, s) = (self.compiled(&log), began.elapsed().as_secs());
            progress.show(&format!("{place}: {crates} crates compiled, {s} s"));
        });
        progress.clear();
        let (status, s) = (status?, began.elapsed().as_secs());
        if status == 0 {
            progress.say(&format!("{place}: built in {s} s"));
            return Ok(true);
        }
        let (shown, end) = (log.display(), self.end(&log));
        progress.say(&format!(
            "{place} failed after {s} s; the end of {shown}:\n{end}"
        ));
        Ok(false)
    }

    fn cargo(&self, peer: &Peer, log: &Path) -> Result<Command> {
        let cannot = || format!("cannot write {}", log.display());
        let log = File::create(self.tree.at(log)).with_context(cannot)?;
        let mut cargo = Command::new("cargo");
        cargo
            .args(["install", "--locked", "--force", "--root"])
            .arg(self.root)
            .arg(format!("{}@{}", peer.name, peer.version))
            .current_dir(self.tree.root())
            .env("CARGO_TARGET_DIR", self.target()?)
            .stdout(log.try_clone().with_context(cannot)?)
            .stderr(log);
        Ok(cargo)
    }

    fn target(&self) -> Result<PathBuf> {
        let target = std::path::absolute(self.tree.at(TARGET));
        target.context("cannot tell the current folder")
    }

    fn log(&self, log: &Path) -> String {
        let bytes = fs::read(self.tree.at(log)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// How many crates cargo has begun to compile.
    fn compiled(&self, log: &Path) -> usize {
        let text = self.log(log);
        let begins = |line: &&str| line.trim_start_matches(' ').starts_with("Compiling ");
        text.lines().filter(begins).count()
    }

    /// The last lines of a log, indented.
    fn end(&self, log: &Path) -> String {
        let text = self.log(log);
        let lines: Vec<String> = text.lines().map(|line| format!("    {line}")).collect();
        lines[lines.len().saturating_sub(LINES)..].join("\n")
    }
}
