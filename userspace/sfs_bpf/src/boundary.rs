//! Definition of invocations: the unit that shares a credit, and the events that begin an
//! invocation. The names are those of the options.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

use clap::ValueEnum;
use libbpf_rs::skel::{OpenSkel, Skel};
use libbpf_rs::Link;
use scx_utils::compat;
use tracing::warn;

use crate::bpf_intf::{
    sfs_boundary_SFS_BOUNDARY_ACCEPT, sfs_boundary_SFS_BOUNDARY_EXEC,
    sfs_boundary_SFS_BOUNDARY_FORK, sfs_boundary_SFS_BOUNDARY_HINT, sfs_boundary_SFS_BOUNDARY_IDLE,
    sfs_boundary_SFS_BOUNDARY_RECEIVE, sfs_identity_SFS_IDENTITY_COMM,
    sfs_identity_SFS_IDENTITY_SANDBOX, sfs_unit_SFS_UNIT_CGROUP, sfs_unit_SFS_UNIT_PROCESS,
    sfs_unit_SFS_UNIT_THREAD,
};
use crate::bpf_skel::{BpfSkel, OpenBpfSkel};
use crate::preflight::may_read_types_of_modules;

/// The tasks that share one credit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Unit {
    /// A process with all its threads.
    Process,
    /// A sandbox: all tasks in a cgroup that --cgroup names, and below it.
    Cgroup,
    /// Each thread by itself, for the virtual CPUs of microVMs.
    Thread,
}

/// The events that begin an invocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Boundary {
    /// A process starts.
    Fork,
    /// A process executes another program.
    Exec,
    /// accept() returns a connection, as in a warm sandbox that serves requests.
    Accept,
    /// A receive returns data after waiting for it, as in a runtime that pulls
    /// its next request.
    Receive,
    /// The platform sends a hint (--hint-listen).
    Hint,
    /// A unit wakes up after sleeping for --idle-boundary-ms.
    Idle,
}

/// How functions are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Identity {
    /// The names of the program and of its parent process.
    Comm,
    /// The sandbox's cgroup: the part that --cgroup has as {function},
    /// otherwise its path without a trailing number (resize-7 is a sandbox of
    /// resize).
    Cgroup,
    /// The path of the sandbox's parent cgroup.
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

/// A place in the kernel where programs watch a boundary.
struct Place {
    /// The programs of the kernel half that attach there.
    programs: &'static [&'static str],
    boundary: Boundary,
    /// A name in the kernel's types that exists if the kernel has the place.
    name: &'static str,
    /// The module that may provide it if it is not built in.
    module: Option<&'static str>,
    /// The events that are not seen without it.
    unseen: &'static str,
}

const PLACES: [Place; 6] = [
    Place {
        programs: &["on_exec"],
        boundary: Boundary::Exec,
        name: "btf_trace_sched_process_exec",
        module: None,
        unseen: "processes that execute another program",
    },
    Place {
        programs: &["enter_inet_accept", "leave_inet_accept"],
        boundary: Boundary::Accept,
        name: "inet_accept",
        module: None,
        unseen: "accept() of TCP connections",
    },
    Place {
        programs: &["enter_unix_accept", "leave_unix_accept"],
        boundary: Boundary::Accept,
        name: "unix_accept",
        module: Some("unix"),
        unseen: "accept() on Unix sockets",
    },
    Place {
        programs: &["leave_inet_recvmsg"],
        boundary: Boundary::Receive,
        name: "inet_recvmsg",
        module: None,
        unseen: "data received over IPv4",
    },
    Place {
        programs: &["leave_inet6_recvmsg"],
        boundary: Boundary::Receive,
        name: "inet6_recvmsg",
        module: Some("ipv6"),
        unseen: "data received over IPv6",
    },
    Place {
        programs: &["leave_unix_stream_recvmsg"],
        boundary: Boundary::Receive,
        name: "unix_stream_recvmsg",
        module: Some("unix"),
        unseen: "data received from Unix sockets",
    },
];

impl Place {
    fn of(program: &OsStr) -> Option<&'static Self> {
        let is_one = |place: &&Self| place.programs.iter().any(|name| program == *name);
        PLACES.iter().find(is_one)
    }

    /// Whether it is requested. exec also changes the name that may identify a function.
    fn is_wanted(&self, boundaries: &[Boundary], identity: Identity) -> bool {
        boundaries.contains(&self.boundary)
            || self.boundary == Boundary::Exec && identity == Identity::Comm
    }

    /// Whether the kernel has it, according to its types.
    fn is_there(&self) -> bool {
        if compat::ksym_exists(self.name).unwrap_or(false) {
            return true;
        }
        let file = |module: &str| Path::new("/sys/kernel/btf").join(module).exists();
        self.module.is_some_and(file) && may_read_types_of_modules()
    }

    fn say_missing(&self, why: &str) {
        warn!(
            "--boundary {} does not see {}: {why}; the other boundaries are loaded",
            self.boundary, self.unseen
        );
    }
}

/// Enables loading of only those programs that the boundaries need, since a program that is not
/// loaded costs nothing, and whose place this kernel has. A missing boundary is logged and does
/// not prevent loading.
pub fn choose_programs(skel: &mut OpenBpfSkel<'_>, boundaries: &[Boundary], identity: Identity) {
    let usable: Vec<bool> = PLACES
        .iter()
        .map(|place| {
            let wanted = place.is_wanted(boundaries, identity);
            let there = wanted && place.is_there();
            if wanted && !there {
                place.say_missing(&format!("this kernel has no {}", place.name));
            }
            there
        })
        .collect();
    for mut program in skel.open_object_mut().progs_mut() {
        let at = PLACES.iter().zip(&usable);
        let name = program.name().to_owned();
        for (_, usable) in at.filter(|(place, _)| place.programs.iter().any(|one| name == *one)) {
            program.set_autoload(*usable);
            // attach() attaches them one by one.
            program.set_autoattach(false);
        }
    }
}

/// Attaches the programs that watch boundaries. A failure is logged and does not stop the
/// loader.
pub fn attach(skel: &mut BpfSkel<'_>) -> Vec<Link> {
    let mut links = Vec::new();
    for program in skel.object_mut().progs_mut() {
        let Some(place) = Place::of(program.name()).filter(|_| program.autoload()) else {
            continue;
        };
        match program.attach() {
            Ok(link) => links.push(link),
            Err(error) => place.say_missing(&format!("cannot attach to {} ({error})", place.name)),
        }
    }
    links
}

/// Warns of contradictory options.
pub fn warn_of_contradictions(unit: Unit, boundaries: &[Boundary]) {
    if unit == Unit::Thread && boundaries.contains(&Boundary::Accept) {
        warn!("--unit thread with --boundary accept: only the thread that accepts gets credit");
    }
}
