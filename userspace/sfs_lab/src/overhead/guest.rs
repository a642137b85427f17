//! The guests in which it is measured.

use anyhow::{Context, Result};
use sfs_jobs::failure::{refuse, Failure};
use sfs_jobs::job::{self, Job};
use sfs_jobs::progress::Progress;
use sfs_jobs::signals::Interrupt;
use sfs_jobs::tree::{in_path, is_program, Tree};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Programs of this workspace that every guest has.
const OURS: [&str; 4] = ["scx_sfs", "sfs_crowd", "faasbench", "sfs_guest"];

/// Where bpftool is if it is in no folder of an ordinary user's PATH.
const BPFTOOL: &str = "/usr/sbin/bpftool";

/// How often the line about the guest is written anew.
const SHOW: Duration = Duration::from_millis(500);

/// The parts of a guest, and the folder of its figures.
pub struct Lab<'a> {
    pub tree: &'a Tree,
    out: &'a Path,
    kernel: Option<&'a str>,
    /// Programs that a guest has, from the repository's root.
    programs: Vec<PathBuf>,
    interrupt: &'a Interrupt,
    progress: &'a Progress,
}

impl<'a> Lab<'a> {
    /// Finds what guests need.
    pub fn new(
        tree: &'a Tree,
        out: &'a Path,
        kernel: Option<&'a str>,
        needs_bpftool: bool,
        interrupt: &'a Interrupt,
        progress: &'a Progress,
    ) -> Result<Self> {
        let mut programs: Vec<PathBuf> = OURS.iter().map(|name| tree.program(name)).collect();
        if let Some(missing) = programs.iter().find(|path| !tree.is_program(path)) {
            refuse!("{} is not built; run make first", missing.display());
        }
        let chrt = in_path("chrt");
        let bpftool = in_path("bpftool")
            .or_else(|| Some(PathBuf::from(BPFTOOL)).filter(|path| is_program(path)));
        if needs_bpftool {
            match bpftool {
                Some(path) => programs.push(path),
                None => refuse!("bpftool is not installed"),
            }
        }
        match chrt {
            Some(path) => programs.push(path),
            None => refuse!("chrt is not installed"),
        }
        Ok(Self {
            tree,
            out,
            kernel,
            programs,
            interrupt,
            progress,
        })
    }

    /// Measures in a guest with these options of vm/run; its files go to `OUT/NAME`.
    pub fn guest(&self, name: &str, options: &[&str], command: &[&str]) -> Result<()> {
        let folder = self.out.join(name);
        let here = self.tree.at(&folder);
        if here.exists() {
            std::fs::remove_dir_all(&here)
                .with_context(|| format!("cannot remove {}", here.display()))?;
        }
        std::fs::create_dir_all(&here)
            .with_context(|| format!("cannot make the folder {}", here.display()))?;
        let mut vm = job::call_tied(self.tree, "vm/run");
        vm.args(["--quiet", "--console"])
            .arg(folder.join("console"))
            .args(options)
            .args(self.kernel.iter().flat_map(|kernel| ["--kernel", kernel]));
        for program in &self.programs {
            vm.arg("--in").arg(program);
        }
        vm.arg("--out")
            .arg(format!("/out:{}", folder.display()))
            .args(["--", "chrt", "-f", "10", "sfs_guest", "overhead"])
            .args(command);
        let since = Instant::now();
        let status = Job::start(&mut vm)?.wait_and(self.interrupt, SHOW, || {
            let seconds = since.elapsed().as_secs();
            self.progress.show(&format!(
                "{name}: a guest has been measuring for {seconds} s"
            ));
        });
        self.progress.clear();
        match status? {
            0 => Ok(()),
            status => Err(Failure::Program(
                format!("the guest {name}"),
                u8::try_from(status).unwrap_or(1),
            )
            .into()),
        }
    }

    /// The text of this file of the guest `name`.
    pub fn left(&self, name: &str, file: &str) -> Result<String> {
        let path = self.tree.at(self.out).join(name).join(file);
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    }
}
