//! The socket: creates it, protects it, reads it in batches, removes it.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Result};
use nix::cmsg_space;
use nix::errno::Errno;
use nix::fcntl::{open, AtFlags, OFlag};
use nix::libc;
use nix::sys::socket::{
    recvmmsg, setsockopt, sockopt, ControlMessageOwned, MsgFlags, MultiHeaders, RecvMsg,
    SockaddrLike, SockaddrStorage, UnixCredentials,
};
use nix::sys::stat::{fchmod, fstat, Mode};
use nix::unistd::fchownat;
use sfs_hint::{Address, MAX_DATAGRAM_BYTES};
use tracing::{debug, warn};

use super::options::HintOptions;
use super::sender::{ProcessSender, Sender};

/// Datagrams received by one system call.
const BATCH: usize = 32;

/// Receive buffer of a UDP socket, in bytes: room for some 10,000 small datagrams with the
/// kernel's overhead.
const BUFFER_BYTES: usize = 8 << 20;

/// Kernel limit of queued datagrams in a Unix socket, whatever their length, ...
const QUEUE_LENGTH: &str = "/proc/sys/net/unix/max_dgram_qlen";

/// ... which should be at least this much; it is what systemd sets.
const GOOD_QUEUE_LENGTH: u32 = 512;

/// Socket options of `asm-generic/socket.h`: each datagram carries a descriptor of its sender
/// (Linux 6.5), ...
const SO_PASSPIDFD: libc::c_int = 76;

/// ... and descriptors attached by senders are passed on (Linux 6.16); on by default.
const SO_PASSRIGHTS: libc::c_int = 83;

/// The control message with the descriptor of the sender.
const SCM_PIDFD: libc::c_int = 4;

/// A buffer one byte above the limit, to detect datagrams that are too long.
type Buffer = [u8; MAX_DATAGRAM_BYTES + 1];

/// The socket that receives hints.
pub(super) struct HintSocket {
    socket: OwnedFd,
    address: Address,
    buffers: Vec<Buffer>,
    /// Whether each datagram carries a descriptor of its sender.
    with_pidfd: bool,
    /// The kernel's count of datagrams dropped since the socket was created.
    dropped: u32,
    // Dropped last.
    _file: Option<SocketFile>,
}

/// The result of one receive call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Received {
    /// Number of datagrams.
    pub(super) datagrams: usize,
    /// Whether there may be more.
    pub(super) full: bool,
    /// Datagrams that the kernel has dropped since the previous call.
    pub(super) dropped: u64,
}

impl HintSocket {
    /// Creates the socket. Nobody else can send before its file has the mode and the owner in
    /// `options`.
    pub(super) fn bind(address: &Address, options: &HintOptions) -> Result<Self> {
        let (socket, address, file) = match address {
            Address::Unix(path) => {
                let (socket, file) = bind_unix(path, options)?;
                (socket.into(), address.clone(), Some(file))
            }
            Address::Udp(at) => {
                // The type guarantees it already; this is the last check.
                let address = Address::udp(*at)?;
                let socket = UdpSocket::bind(at)?;
                socket.set_nonblocking(true)?;
                enlarge(&socket);
                let _ = setsockopt(&socket, sockopt::RxqOvfl, &1);
                let address = socket.local_addr().map_or(address, Address::Udp);
                (socket.into(), address, None)
            }
        };
        Ok(Self {
            socket,
            address,
            buffers: vec![[0; MAX_DATAGRAM_BYTES + 1]; BATCH],
            with_pidfd: !options.hint_allow_cgroup.is_empty(),
            dropped: 0,
            _file: file,
        })
    }

    /// Returns the address that it is bound to.
    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    /// Receives up to [`BATCH`] datagrams without waiting. `take` gets the sender of each, and
    /// `None` for a datagram that is too long.
    pub(super) fn receive(
        &mut self,
        mut take: impl FnMut(Sender, Option<&[u8]>),
    ) -> Result<Received> {
        match self.address {
            // Senders have no addresses, and the kernel writes none.
            Address::Unix(_) => {
                let room = if self.with_pidfd {
                    cmsg_space!(UnixCredentials, libc::c_int)
                } else {
                    // No room for descriptors: the kernel closes those attached by senders.
                    cmsg_space!(UnixCredentials)
                };
                self.receive_with::<()>(room, |message, datagram, _| {
                    take(process_sender(message), datagram);
                })
            }
            Address::Udp(_) => {
                let room = cmsg_space!(u32);
                self.receive_with::<SockaddrStorage>(room, |message, datagram, dropped| {
                    note_dropped(message, dropped);
                    take(network_sender(message), datagram);
                })
            }
        }
    }

    fn receive_with<Name: SockaddrLike + Copy>(
        &mut self,
        room: Vec<u8>,
        mut take: impl FnMut(&RecvMsg<'_, '_, Name>, Option<&[u8]>, &mut u32),
    ) -> Result<Received> {
        // The kernel overwrites the buffer lengths in the headers, so they can be used only
        // once.
        let mut headers = MultiHeaders::<Name>::preallocate(BATCH, Some(room));
        let mut slices: Vec<[IoSliceMut<'_>; 1]> = self
            .buffers
            .iter_mut()
            .map(|buffer| [IoSliceMut::new(buffer)])
            .collect();
        let result = recvmmsg(
            self.socket.as_raw_fd(),
            &mut headers,
            slices.iter_mut(),
            MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC,
            None,
        );
        let messages = match result {
            Ok(messages) => messages,
            // Memory shortage is temporary, and the datagrams are still queued.
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ENOMEM | Errno::ENOBUFS) => {
                return Ok(Received::nothing())
            }
            Err(error) => return Err(error.into()),
        };
        let before = self.dropped;
        let mut datagrams = 0;
        for message in messages {
            datagrams += 1;
            let bytes = message.iovs().next().unwrap_or(&[]);
            let datagram = (bytes.len() <= MAX_DATAGRAM_BYTES).then_some(bytes);
            take(&message, datagram, &mut self.dropped);
        }
        Ok(Received {
            datagrams,
            full: datagrams == BATCH,
            dropped: self.dropped.wrapping_sub(before).into(),
        })
    }
}

/// Returns the process that sent a datagram to a Unix socket. All received descriptors are
/// closed eventually. If its control messages did not all fit, because of attached descriptors,
/// the sender is unknown.
fn process_sender<Name>(message: &RecvMsg<'_, '_, Name>) -> Sender {
    let (mut id, mut pidfd) = (None, None);
    for control in message.cmsgs().into_iter().flatten() {
        match control {
            ControlMessageOwned::ScmCredentials(credentials) => {
                id = Some(ProcessSender {
                    pid: credentials.pid(),
                    uid: credentials.uid(),
                });
            }
            ControlMessageOwned::ScmRights(fds) => fds.into_iter().for_each(close_received),
            ControlMessageOwned::Unknown(other) if other.cmsg_header.cmsg_type == SCM_PIDFD => {
                pidfd = other.data_bytes.first_chunk().and_then(|bytes| {
                    // For a reaped process, this may be an error instead.
                    let fd = libc::c_int::from_ne_bytes(*bytes);
                    // SAFETY: the kernel has just created it for this message, and it has no
                    // other owner.
                    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
                });
            }
            _ => {}
        }
    }
    id.map_or(Sender::Unknown, |id| Sender::Process { id, pidfd })
}

fn close_received(fd: libc::c_int) {
    // SAFETY: the kernel has just created it for a message, and it has no other owner.
    drop(unsafe { OwnedFd::from_raw_fd(fd) });
}

/// Returns the address that sent a datagram over UDP.
fn network_sender(message: &RecvMsg<'_, '_, SockaddrStorage>) -> Sender {
    let Some(name) = message.address else {
        return Sender::Unknown;
    };
    let v4 = name.as_sockaddr_in().map(|at| SocketAddr::V4((*at).into()));
    let v6 = || {
        name.as_sockaddr_in6()
            .map(|at| SocketAddr::V6((*at).into()))
    };
    v4.or_else(v6).map_or(Sender::Unknown, Sender::Network)
}

/// Stores the kernel's count of dropped datagrams so far.
fn note_dropped<Name>(message: &RecvMsg<'_, '_, Name>, dropped: &mut u32) {
    for control in message.cmsgs().into_iter().flatten() {
        if let ControlMessageOwned::RxqOvfl(count) = control {
            *dropped = count;
        }
    }
}

impl Received {
    fn nothing() -> Self {
        Self {
            datagrams: 0,
            full: false,
            dropped: 0,
        }
    }
}

impl AsFd for HintSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Enlarges the receive buffer for bursts. Above the system's limit this requires
/// CAP_NET_ADMIN.
fn enlarge(socket: &UdpSocket) {
    if setsockopt(socket, sockopt::RcvBufForce, &BUFFER_BYTES).is_err() {
        let _ = setsockopt(socket, sockopt::RcvBuf, &BUFFER_BYTES);
    }
}

fn bind_unix(path: &Path, options: &HintOptions) -> Result<(UnixDatagram, SocketFile)> {
    make_folder(path)?;
    advise_on_queue();
    let socket = match bind_private(path, options) {
        Err(error) if is_in_use(&error) => {
            remove_stale(path)?;
            bind_private(path, options)?
        }
        result => result?,
    };
    // From here on, dropping `file` removes the socket file.
    let file = SocketFile::of(path)?;
    file.hand_over(options)?;
    socket.set_nonblocking(true)?;
    Ok((socket, file))
}

/// Creates the folder for the socket, but not its parents.
fn make_folder(path: &Path) -> Result<()> {
    let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) else {
        return Ok(());
    };
    match DirBuilder::new().mode(0o755).create(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists && !folder.is_dir() => {
            Err(error).with_context(|| format!("cannot create the folder {}", folder.display()))
        }
        _ => Ok(()),
    }
}

fn advise_on_queue() {
    let length = fs::read_to_string(QUEUE_LENGTH);
    let length = length.ok().and_then(|text| text.trim().parse::<u32>().ok());
    match length {
        Some(length) if length < GOOD_QUEUE_LENGTH => warn!(
            "the kernel queues {length} datagrams for a Unix socket and refuses more: \
             for bursts of hints set net.unix.max_dgram_qlen to {GOOD_QUEUE_LENGTH} before the start"
        ),
        _ => debug!("{QUEUE_LENGTH}: {length:?}"),
    }
}

/// Binds a socket to which only this user may send: on Linux the file gets the mode of the
/// socket, less the umask.
fn bind_private(path: &Path, options: &HintOptions) -> Result<UnixDatagram> {
    use nix::sys::socket::{bind, socket, AddressFamily, SockFlag, SockType, UnixAddr};
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let fd = socket(AddressFamily::Unix, SockType::Datagram, flags, None)?;
    ask_who_sends(&fd, options)?;
    fchmod(&fd, Mode::S_IRUSR | Mode::S_IWUSR)?;
    bind(fd.as_raw_fd(), &UnixAddr::new(path)?)?;
    Ok(fd.into())
}

fn is_in_use(error: &anyhow::Error) -> bool {
    error.downcast_ref() == Some(&Errno::EADDRINUSE)
}

/// Makes the kernel name the sender of each datagram, and drop descriptors attached by senders.
/// The latter requires Linux 6.16. Earlier kernels require that there is no room for
/// descriptors, and so none for the sender's pidfd.
fn ask_who_sends(socket: &OwnedFd, options: &HintOptions) -> Result<()> {
    setsockopt(socket, sockopt::PassCred, &true).context("cannot request the senders of hints")?;
    let no_descriptors = set_flag(socket, SO_PASSRIGHTS, false);
    if options.hint_allow_cgroup.is_empty() {
        return Ok(());
    }
    no_descriptors
        .and_then(|()| set_flag(socket, SO_PASSPIDFD, true))
        .context("--hint-allow-cgroup needs Linux 6.16 or later; use --hint-allow-uid instead")
}

/// Sets an option that the library does not support.
fn set_flag(socket: &OwnedFd, option: libc::c_int, value: bool) -> io::Result<()> {
    let value = libc::c_int::from(value);
    // SAFETY: the pointer refers to an object of the given size.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    Errno::result(result).map(drop).map_err(io::Error::from)
}

/// Removes the socket of a dead loader.
fn remove_stale(path: &Path) -> Result<()> {
    if !fs::symlink_metadata(path)?.file_type().is_socket() {
        bail!("a file of that name exists and is not a socket; remove it or choose another path");
    }
    match UnixDatagram::unbound()?.connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
        Ok(()) => bail!("another program listens there; stop it or choose another path"),
        Err(error) => return Err(error).context("cannot tell whether another program listens"),
    }
    debug!("replacing {}, which has no listener", path.display());
    fs::remove_file(path).context("cannot remove the unused socket")
}

/// The file of a socket. Dropping it removes the file, unless another file has replaced it.
struct SocketFile {
    path: PathBuf,
    file: OwnedFd,
}

impl SocketFile {
    /// Opens the file without following a link, so that nobody can replace it while owner and
    /// mode are set.
    fn of(path: &Path) -> Result<Self> {
        let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let file = open(path, flags, Mode::empty()).context("cannot open the new socket")?;
        Ok(Self {
            path: path.to_owned(),
            file,
        })
    }

    fn hand_over(&self, options: &HintOptions) -> Result<()> {
        if let Some(owner) = options.hint_owner {
            fchownat(
                &self.file,
                "",
                owner.user,
                owner.group,
                AtFlags::AT_EMPTY_PATH,
            )
            .context("cannot give it to --hint-owner (this needs CAP_CHOWN)")?;
        }
        let mode = fs::Permissions::from_mode(options.hint_mode);
        let file = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        fs::set_permissions(file, mode).context("cannot set --hint-mode")
    }

    fn is_still_there(&self) -> bool {
        let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let there = open(&self.path, flags, Mode::empty()).and_then(fstat);
        match (there, fstat(&self.file)) {
            (Ok(there), Ok(ours)) => (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino),
            _ => false,
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.is_still_there() {
            let _ = fs::remove_file(&self.path);
        }
    }
}
