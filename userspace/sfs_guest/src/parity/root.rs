//! /debian: the root file system of the programs that are Debian's.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{ensure, Context, Result};
use nix::mount::{mount, MsFlags};

/// Where it is.
pub const ROOT: &str = "/debian";

/// Its files, if there are programs to run there.
const ARCHIVES: [&str; 2] = ["/stress.tar", "/servers.tar"];

/// The guest's file systems that are there too.
const SHARED: [&str; 5] = ["proc", "sys", "dev", "tmp", "run"];

/// The users of the servers.
const USERS: &str = "root:x:0:0::/root:/bin/sh
nobody:x:65534:65534::/tmp:/bin/sh
postgres:x:100:100::/tmp:/bin/sh
";
const GROUPS: &str = "root:x:0:
nogroup:x:65534:
postgres:x:100:
";

/// Unpacks the archives to [`ROOT`], with the kernel's file systems and users in it, and
/// brings up the loopback interface.
///
/// # Errors
/// If something of this fails.
pub fn prepare() -> Result<()> {
    let root = Path::new(ROOT);
    fs::create_dir_all(root)?;
    for archive in ARCHIVES {
        if Path::new(archive).exists() {
            command_succeeds(Command::new("tar").args(["-x", "-f", archive, "-C", ROOT]))?;
            fs::remove_file(archive)?;
        }
    }
    for name in SHARED {
        let (here, there) = (Path::new("/").join(name), root.join(name));
        fs::create_dir_all(&there)?;
        let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
        mount(Some(&here), &there, None::<&str>, flags, None::<&str>)
            .with_context(|| format!("cannot mount {}", there.display()))?;
    }
    // initdb asks a shell to run the server.
    for folder in ["etc", "bin"] {
        fs::create_dir_all(root.join(folder))?;
    }
    if !root.join("bin/sh").exists() {
        fs::copy("/bin/busybox", root.join("bin/sh")).context("cannot copy a shell")?;
    }
    fs::write(root.join("etc/passwd"), USERS)?;
    fs::write(root.join("etc/group"), GROUPS)?;
    command_succeeds(Command::new("ip").args(["link", "set", "lo", "up"]))
}

fn command_succeeds(command: &mut Command) -> Result<()> {
    let status = command.status();
    let name = command.get_program().display();
    let status = status.with_context(|| format!("cannot start {name}"))?;
    ensure!(status.success(), "{name} has failed: {status}");
    Ok(())
}

/// The command for a program there.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new("chroot");
    command.arg(ROOT).args(arguments);
    command
}
