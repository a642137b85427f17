//! The helper processes, folder and cgroups of a replay. The supervisor creates
//! them, and removes them afterwards in any case.

use super::cgroup::Cgroups;
use super::keeper::Plan;
use super::setup::{Warm, KEEP, PEER};
use crate::channel;
use anyhow::{bail, Context, Result};
use nix::fcntl::{fcntl, FcntlArg, FdFlag};
use nix::sys::memfd::{memfd_create, MFdFlags};
use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// Starts this program again with `arguments`, which select its role, with
/// `stdin` as its standard input, in `folder`.
///
/// # Errors
/// If it cannot be started.
pub fn spawn(arguments: &[&str], stdin: Option<OwnedFd>, folder: Option<&Path>) -> Result<Child> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let mut command = Command::new(program);
    command.args(arguments);
    command.stdin(stdin.map_or_else(Stdio::null, Stdio::from));
    if let Some(folder) = folder {
        command.current_dir(folder);
    }
    Ok(command.spawn()?)
}

/// Helper processes, folder and cgroups of a replay. A drop without
/// [`Helpers::end`] also ends and removes them.
#[derive(Debug, Default)]
pub struct Helpers {
    /// The working folder of invocations for files.
    folder: Option<TempDir>,
    peer: Option<Peer>,
    keeper: Option<Child>,
    cgroups: Option<Cgroups>,
}

#[derive(Debug)]
struct Peer {
    process: Child,
    /// Its orders; it ends when the last such socket is closed.
    orders: OwnedFd,
}

impl Helpers {
    /// Creates a folder for files, which is removed with its content.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn make_folder(&mut self) -> Result<()> {
        let new = tempfile::Builder::new().prefix("faasbench-").tempdir();
        let cannot = || {
            let place = std::env::temp_dir();
            format!(
                "cannot make a folder for files in {} (see TMPDIR)",
                place.display()
            )
        };
        self.folder = Some(new.with_context(cannot)?);
        Ok(())
    }

    /// That folder.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_ref().map(TempDir::path)
    }

    /// Starts the peer.
    ///
    /// # Errors
    /// If that fails.
    pub fn start_peer(&mut self) -> Result<()> {
        let (orders, theirs) = channel::pair().context("cannot make a socket")?;
        let process =
            spawn(&[PEER], Some(theirs), None).context("cannot start the peer of the pipes")?;
        // Processes started from now on inherit it.
        fcntl(&orders, FcntlArg::F_SETFD(FdFlag::empty())).context("cannot share a socket")?;
        self.peer = Some(Peer { process, orders });
        Ok(())
    }

    /// The socket that the peer takes orders at.
    pub fn peer(&self) -> Option<RawFd> {
        self.peer.as_ref().map(|peer| peer.orders.as_raw_fd())
    }

    /// Starts the keeper on the board in the open file `board`, and creates the
    /// cgroups of the functions `names` first, if requested. Returns the
    /// dispatcher's channel to it.
    ///
    /// # Errors
    /// If that fails.
    pub fn start_keeper(&mut self, board: &str, names: Vec<String>, warm: Warm) -> Result<OwnedFd> {
        if let Some(limits) = warm.cgroup {
            self.cgroups = Some(Cgroups::set_up(&names, limits)?);
        }
        let plan = Plan {
            functions: names,
            cgroups: self.cgroups.clone(),
            forks: warm.forks,
        };
        let plan = shared(&serde_json::to_vec(&plan)?).context("cannot hand down the plan")?;
        let (ours, theirs) = channel::pair().context("cannot make a socket")?;
        let arguments = [KEEP, board, &plan.as_raw_fd().to_string()];
        let keeper = spawn(&arguments, Some(theirs), self.folder());
        self.keeper = Some(keeper.context("cannot start the keeper of the sandboxes")?);
        Ok(ours)
    }

    /// Waits for the helpers, which end after the dispatcher, and removes folder and
    /// cgroups.
    ///
    /// # Errors
    /// If a helper failed, or something cannot be removed.
    pub fn end(&mut self) -> Result<()> {
        let mut failed = Vec::new();
        if let Some(mut keeper) = self.keeper.take() {
            let status = keeper.wait().context("cannot wait for the keeper")?;
            if !status.success() {
                failed.push(format!("the keeper of the sandboxes ended with {status}"));
            }
        }
        if let Some(Peer {
            mut process,
            orders,
        }) = self.peer.take()
        {
            drop(orders);
            let status = process.wait().context("cannot wait for the peer")?;
            if !status.success() {
                failed.push(format!("the peer of the pipes ended with {status}"));
            }
        }
        if let Some(cgroups) = self.cgroups.take() {
            // The keeper has done this, unless it was killed.
            cgroups.remove()?;
        }
        if let Some(folder) = self.folder.take() {
            folder
                .close()
                .context("cannot remove the folder for files")?;
        }
        if !failed.is_empty() {
            bail!("{}", failed.join("; "));
        }
        Ok(())
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        // After a drop without end() the caller reports its own error.
        let _ = self.end();
    }
}

/// An anonymous file with `content`, open over an exec.
fn shared(content: &[u8]) -> Result<File> {
    let mut file = File::from(memfd_create(c"faasbench-plan", MFdFlags::empty())?);
    file.write_all(content)?;
    file.rewind()?;
    Ok(file)
}
