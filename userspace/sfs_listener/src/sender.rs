//! The sender of a datagram, and whether its hints are accepted.
//!
//! The kernel names the sender: with `SO_PASSCRED`, each datagram at a Unix socket carries the
//! credentials of its sender, and only root can forge them. The process id in them is valid as
//! long as the process lives. `SO_PASSPIDFD` adds a descriptor of the process, which tells
//! whether it does.

use std::fs;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::unistd::{geteuid, Uid};

use super::options::HintOptions;

/// File with the uid that the kernel reports for users without an id in this user namespace.
const OVERFLOW_UID: &str = "/proc/sys/kernel/overflowuid";

/// Its value on all usual systems.
const USUAL_OVERFLOW_UID: u32 = 65534;

/// The sender of a datagram.
#[derive(Debug)]
pub(super) enum Sender {
    /// A process, over a Unix socket.
    Process {
        /// Its process and user ids.
        id: ProcessSender,
        /// A descriptor of the process, if requested.
        pidfd: Option<OwnedFd>,
    },
    /// An address on this machine, over UDP.
    Network(SocketAddr),
    /// The kernel has not named the sender.
    Unknown,
}

/// A process, according to its credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ProcessSender {
    /// Process id in this process's namespace; 0: not visible here.
    pub(super) pid: i32,
    /// User id in this process's namespace.
    pub(super) uid: u32,
}

/// Key that tells senders apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum SenderKey {
    /// A process over a Unix socket.
    Process(ProcessSender),
    /// An address and a port, over UDP.
    Network(SocketAddr),
}

/// The path of a cgroup in the form of `/proc/PID/cgroup`: from the root of the hierarchy, with
/// a leading slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SenderGroup(PathBuf);

impl SenderGroup {
    /// Parses a path below `/sys/fs/cgroup`, with or without a leading slash.
    ///
    /// # Errors
    ///
    /// It is the root, which contains every process, or not the path of a cgroup.
    pub fn parse(text: &str) -> Result<Self, String> {
        let path = Path::new("/").join(text);
        if path.starts_with("/sys/fs/cgroup") {
            return Err("want the path as in /proc/PID/cgroup, without /sys/fs/cgroup".to_owned());
        }
        if path == Path::new("/") {
            return Err("every process is in the root; name a cgroup below it".to_owned());
        }
        let is_plain = |part| matches!(part, Component::RootDir | Component::Normal(_));
        if !path.components().all(is_plain) || text.contains(['\n', '\0']) {
            return Err("want a path without .. and line breaks".to_owned());
        }
        Ok(Self(path))
    }

    /// Returns whether `path` is this cgroup or one below it.
    fn holds(&self, path: &Path) -> bool {
        let climbs = path.components().any(|part| part == Component::ParentDir);
        !climbs && path.starts_with(&self.0)
    }
}

impl std::fmt::Display for SenderGroup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.display().fmt(f)
    }
}

/// The senders whose hints are accepted.
#[derive(Debug)]
pub(super) struct Admission {
    uids: Vec<u32>,
    groups: Vec<SenderGroup>,
    /// The user id reported for users without an id in this user namespace.
    nobody: u32,
}

impl Admission {
    /// Admits root, this process's own user, and the users and cgroups in `options`.
    pub(super) fn new(options: &HintOptions) -> Self {
        let own = [0, geteuid().as_raw()];
        let named = options.hint_allow_uid.iter().copied().map(Uid::as_raw);
        Self {
            uids: own.into_iter().chain(named).collect(),
            groups: options.hint_allow_cgroup.clone(),
            nobody: overflow_uid(),
        }
    }

    /// Returns whether hints are accepted from `sender`. A process that is not
    /// visible here, or whose user has no id here, is in another namespace, so
    /// its ids do not identify it.
    pub(super) fn admits(&self, sender: &Sender) -> bool {
        match sender {
            // --hint-allow-udp was given, otherwise this socket would not exist.
            Sender::Network(_) => true,
            Sender::Unknown => false,
            Sender::Process { id, .. } if id.pid <= 0 || id.uid == self.nobody => false,
            Sender::Process { id, .. } if self.uids.contains(&id.uid) => true,
            Sender::Process { id, pidfd } => pidfd
                .as_ref()
                .is_some_and(|pidfd| self.is_in_a_group(id.pid, pidfd)),
        }
    }

    /// Returns whether process `pid` is in one of the cgroups. The cgroup is looked up first,
    /// and then whether the process still lives. If it does, no other process had its id at the
    /// lookup.
    fn is_in_a_group(&self, pid: i32, pidfd: &OwnedFd) -> bool {
        let group = cgroup_of(pid);
        let held = group.is_some_and(|path| self.groups.iter().any(|one| one.holds(&path)));
        held && is_alive(pidfd)
    }
}

impl Sender {
    /// Returns the key that tells it from other senders, if there is one.
    pub(super) fn key(&self) -> Option<SenderKey> {
        match self {
            Self::Process { id, .. } => Some(SenderKey::Process(*id)),
            Self::Network(address) => Some(SenderKey::Network(*address)),
            Self::Unknown => None,
        }
    }
}

impl std::fmt::Display for Sender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Process { id, .. } => write!(f, "process {} of user {}", id.pid, id.uid),
            Self::Network(address) => write!(f, "{address}"),
            Self::Unknown => f.write_str("a process that the kernel does not name"),
        }
    }
}

/// Returns the user id reported for users without an id in this user namespace.
pub(super) fn overflow_uid() -> u32 {
    let text = fs::read_to_string(OVERFLOW_UID).ok();
    text.and_then(|text| text.trim().parse().ok())
        .unwrap_or(USUAL_OVERFLOW_UID)
}

/// Returns the cgroup (version 2) of process `pid`.
fn cgroup_of(pid: i32) -> Option<PathBuf> {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::"))?;
    path.starts_with('/').then(|| path.into())
}

/// Returns whether the process of `pidfd` is still alive.
fn is_alive(pidfd: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::ZERO) == Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::libc;
    use std::os::fd::FromRawFd;
    use std::process::{Child, Command};

    fn group(path: &str) -> SenderGroup {
        SenderGroup::parse(path).unwrap()
    }

    fn admission(uids: &[u32], groups: Vec<SenderGroup>) -> Admission {
        Admission {
            uids: uids.to_vec(),
            groups,
            nobody: 65534,
        }
    }

    fn process(pid: i32, uid: u32) -> Sender {
        let id = ProcessSender { pid, uid };
        Sender::Process { id, pidfd: None }
    }

    /// Returns a process of a user that is not admitted, with its descriptor.
    fn stranger(child: &Child) -> Sender {
        let pid = i32::try_from(child.id()).unwrap();
        // SAFETY: the arguments are plain numbers; the result is checked below.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        let fd = i32::try_from(fd).unwrap();
        assert!(fd >= 0, "no descriptor of a process");
        let id = ProcessSender { pid, uid: 4242 };
        // SAFETY: the descriptor is new and has no other owner.
        let pidfd = Some(unsafe { OwnedFd::from_raw_fd(fd) });
        Sender::Process { id, pidfd }
    }

    #[test]
    fn only_known_users_are_admitted() {
        let admission = admission(&[0, 7, 65534], Vec::new());
        assert!(admission.admits(&process(1, 0)) && admission.admits(&process(1, 7)));
        assert!(!admission.admits(&process(1, 8)));
        // Ids from another namespace do not identify a sender.
        assert!(!admission.admits(&process(0, 0)) && !admission.admits(&process(-1, 0)));
        assert!(!admission.admits(&process(1, 65534)));
        assert!(!admission.admits(&Sender::Unknown));
    }

    #[test]
    fn a_group_contains_itself_and_groups_below() {
        let platform = group("system.slice/platform.service");
        assert_eq!(platform, group("/system.slice/platform.service/"));
        let holds = |path: &str| platform.holds(Path::new(path));
        assert!(holds("/system.slice/platform.service"));
        assert!(holds("/system.slice/platform.service/worker"));
        for other in [
            "/",
            "/system.slice",
            "/system.slice/platform.service2",
            "/system.slice/platform.service (deleted)",
            "/kubepods/system.slice/platform.service",
            "/system.slice/platform.service/../../kubepods",
            "/../system.slice/platform.service",
        ] {
            assert!(!holds(other), "{other}");
        }
    }

    #[test]
    fn invalid_groups_are_refused() {
        for text in ["", "/", "//", "/sys/fs/cgroup/x", "a/../b", "..", "a\nb"] {
            assert!(SenderGroup::parse(text).is_err(), "{text:?} was taken");
        }
    }

    /// The root, which options cannot name, contains every process.
    #[test]
    fn a_process_that_has_ended_is_in_no_group() {
        let everywhere = admission(&[0], vec![SenderGroup("/".into())]);
        let nowhere = admission(&[0], vec![group("no/such/group")]);
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let sender = stranger(&child);
        assert!(everywhere.admits(&sender));
        assert!(!nowhere.admits(&sender));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!everywhere.admits(&sender));
    }

    #[test]
    fn a_reused_id_is_not_trusted() {
        let everywhere = admission(&[0], vec![SenderGroup("/".into())]);
        let mut child = Command::new("true").spawn().unwrap();
        let sender = stranger(&child);
        child.wait().unwrap();
        let Sender::Process { id, pidfd } = sender else {
            panic!("no process")
        };
        // The id of a live process, with the descriptor of a dead one.
        let pid = i32::try_from(std::process::id()).unwrap();
        let id = ProcessSender { pid, ..id };
        assert!(!everywhere.admits(&Sender::Process { id, pidfd }));
    }
}
