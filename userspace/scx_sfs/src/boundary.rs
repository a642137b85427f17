//! Which invocations there are: the unit that shares a credit, and what begins an
//! invocation. The names are those of the options.

use std::fmt;

use clap::ValueEnum;
use tracing::warn;

use crate::bpf_intf::{
    sfs_boundary_SFS_BOUNDARY_ACCEPT, sfs_boundary_SFS_BOUNDARY_EXEC,
    sfs_boundary_SFS_BOUNDARY_FORK, sfs_boundary_SFS_BOUNDARY_HINT, sfs_boundary_SFS_BOUNDARY_IDLE,
    sfs_boundary_SFS_BOUNDARY_RECEIVE, sfs_identity_SFS_IDENTITY_COMM,
    sfs_identity_SFS_IDENTITY_SANDBOX, sfs_unit_SFS_UNIT_CGROUP, sfs_unit_SFS_UNIT_PROCESS,
    sfs_unit_SFS_UNIT_THREAD,
};
use crate::bpf_skel::OpenBpfSkel;

/// What shares one credit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Unit {
    /// A process with all its threads.
    Process,
    /// A sandbox: everything in a cgroup that --cgroup names, and below it.
    Cgroup,
    /// Each thread by itself, as the virtual CPUs of microVMs need it.
    Thread,
}

/// What begins an invocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Boundary {
    /// A process starts.
    Fork,
    /// A process becomes another program.
    Exec,
    /// accept() returns a connection, as in a warm sandbox that serves requests.
    Accept,
    /// A receive returns data that was waited for, as in a runtime that pulls its
    /// next request.
    Receive,
    /// The platform says so (--hint-listen).
    Hint,
    /// A unit wakes up that has slept for --idle-boundary-ms.
    Idle,
}

/// What tells one function from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Identity {
    /// The name of the program and that of its parent's.
    Comm,
    /// The sandbox's cgroup: what --cgroup has as {function}, otherwise its path
    /// without a number at the end (resize-7 is a sandbox of resize).
    Cgroup,
    /// The path of the cgroup above the sandbox's.
    Parent,
}

impl Unit {
    /// Returns the kernel half's number for it.
    pub fn number(self) -> u32 {
        match self {
            Self::Process => sfs_unit_SFS_UNIT_PROCESS,
            Self::Cgroup => sfs_unit_SFS_UNIT_CGROUP,
            Self::Thread => sfs_unit_SFS_UNIT_THREAD,
        }
    }
}

impl Boundary {
    /// Returns the kernel half's bit for it.
    pub fn bit(self) -> u32 {
        match self {
            Self::Fork => sfs_boundary_SFS_BOUNDARY_FORK,
            Self::Exec => sfs_boundary_SFS_BOUNDARY_EXEC,
            Self::Accept => sfs_boundary_SFS_BOUNDARY_ACCEPT,
            Self::Receive => sfs_boundary_SFS_BOUNDARY_RECEIVE,
            Self::Hint => sfs_boundary_SFS_BOUNDARY_HINT,
            Self::Idle => sfs_boundary_SFS_BOUNDARY_IDLE,
        }
    }
}

impl fmt::Display for Boundary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.to_possible_value();
        f.write_str(name.as_ref().map_or("", |name| name.get_name()))
    }
}

impl Identity {
    /// Returns the kernel half's number for it.
    pub fn number(self) -> u32 {
        match self {
            Self::Comm => sfs_identity_SFS_IDENTITY_COMM,
            Self::Cgroup | Self::Parent => sfs_identity_SFS_IDENTITY_SANDBOX,
        }
    }
}

/// Has only those programs loaded, and so attached with the scheduler, that the
/// boundaries need: what is not there costs nothing.
pub fn choose_programs(skel: &mut OpenBpfSkel<'_>, boundaries: &[Boundary], identity: Identity) {
    let accept = boundaries.contains(&Boundary::Accept);
    let receive = boundaries.contains(&Boundary::Receive);
    let exec = boundaries.contains(&Boundary::Exec) || identity == Identity::Comm;
    let programs = &mut skel.progs;
    programs.on_exec.set_autoload(exec);
    programs.enter_inet_accept.set_autoload(accept);
    programs.leave_inet_accept.set_autoload(accept);
    programs.enter_unix_accept.set_autoload(accept);
    programs.leave_unix_accept.set_autoload(accept);
    programs.leave_inet_recvmsg.set_autoload(receive);
    programs.leave_inet6_recvmsg.set_autoload(receive);
    programs.leave_unix_stream_recvmsg.set_autoload(receive);
}

/// Says what the options ask for in vain.
pub fn warn_of_contradictions(unit: Unit, boundaries: &[Boundary]) {
    if unit == Unit::Thread && boundaries.contains(&Boundary::Accept) {
        warn!("--unit thread with --boundary accept: only the thread that accepts gets credit");
    }
}
