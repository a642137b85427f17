//! Serves statistics at a Unix socket, in the protocol of the sched_ext schedulers: one line of
//! JSON for each request, and one for each answer. (The server in `scx_stats` limits neither
//! the length of requests nor the number of clients, and leaves the socket's mode to the
//! umask.)
//!
//! Each client has its own thread, so that a client that does not read its answers blocks no
//! other.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::socket::{
    bind, listen, socket, AddressFamily, Backlog, SockFlag, SockType, UnixAddr,
};
use nix::sys::stat::{fchmod, Mode};
use scx_stats::{StatsRequest, StatsResponse};
use serde_json::Value;
use tracing::debug;

use super::peer::Peer;

/// Maximum number of clients. One more, and the client that has been idle longest is
/// disconnected.
pub(super) const CLIENTS: usize = 32;

/// Maximum length of a request, in bytes; valid requests take less than 100.
const MAX_REQUEST: u64 = 4096;

/// Stack size of a client's thread, in bytes. Answers of any length are written from the heap.
const STACK_BYTES: usize = 256 << 10;

/// Delay before the next attempt to accept if descriptors have run out.
const RETRY: Duration = Duration::from_millis(100);

/// Answers the requests of one client.
pub(super) type Reader = Box<dyn FnMut(&StatsRequest) -> Result<Value> + Send>;

/// The server. Dropping it ends it and closes its connections.
pub(super) struct Server {
    end: Arc<EventFd>,
    clients: Arc<Clients>,
    acceptor: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves at `path`, replacing any previous server. Each client gets its own reader. Only
    /// this user can connect, whatever the umask is.
    ///
    /// # Errors
    ///
    /// The socket or the thread cannot be created.
    pub(super) fn launch(
        path: &Path,
        new_reader: impl Fn(Peer) -> Reader + Send + 'static,
    ) -> Result<Self> {
        let listener =
            listen_at(path).with_context(|| format!("cannot serve at {}", path.display()))?;
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        let end = Arc::new(EventFd::from_value_and_flags(0, flags)?);
        let clients = Arc::new(Clients::default());
        let acceptor = thread::Builder::new().name("sfs_stats".into()).spawn({
            let (end, clients) = (Arc::clone(&end), Arc::clone(&clients));
            move || accept_until(&end, &listener, &clients, &new_reader)
        })?;
        Ok(Self {
            end,
            clients,
            acceptor: Some(acceptor),
        })
    }

    /// Returns the number of connected clients.
    #[cfg(test)]
    fn connected(&self) -> usize {
        self.clients.lock().clients.len()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.end.write(1);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
        let connected = std::mem::take(&mut self.clients.lock().clients);
        connected.values().for_each(Client::hang_up);
    }
}

/// Listens at a socket that has mode 0600 from the start: on Linux the file gets the mode of
/// the socket, less the umask.
fn listen_at(path: &Path) -> Result<UnixListener> {
    if let Some(folder) = path.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(folder)
            .context("cannot create the folder")?;
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(error).context("cannot remove the existing file");
        }
        _ => {}
    }
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let fd = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    fchmod(&fd, Mode::S_IRUSR | Mode::S_IWUSR)?;
    bind(fd.as_raw_fd(), &UnixAddr::new(path)?)?;
    listen(&fd, Backlog::new(16)?)?;
    Ok(fd.into())
}

fn accept_until(
    end: &EventFd,
    listener: &UnixListener,
    clients: &Arc<Clients>,
    new_reader: &impl Fn(Peer) -> Reader,
) {
    loop {
        let mut fds = [
            PollFd::new(end.as_fd(), PollFlags::POLLIN),
            PollFd::new(listener.as_fd(), PollFlags::POLLIN),
        ];
        match poll(&mut fds, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return debug!("statistics are no longer served: {error}"),
        }
        if fds[0].any().unwrap_or(true) {
            return;
        }
        match listener.accept() {
            Ok((stream, _)) => {
                let served = Peer::of(&stream)
                    .and_then(|peer| Ok(serve_in_thread(stream, clients, new_reader(peer))?));
                if let Err(error) = served {
                    debug!("a client of the statistics was refused: {error:#}");
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => {
                debug!("cannot accept a client of the statistics: {error}");
                thread::sleep(RETRY);
            }
        }
    }
}

fn serve_in_thread(stream: UnixStream, clients: &Arc<Clients>, reader: Reader) -> io::Result<()> {
    let id = clients.take(stream.try_clone()?);
    let all = Arc::clone(clients);
    let serve = move || {
        if let Err(error) = serve(&stream, id, &all, reader) {
            debug!("a client of the statistics has gone: {error}");
        }
        all.forget(id);
    };
    let thread = thread::Builder::new()
        .name("sfs_stats".into())
        .stack_size(STACK_BYTES)
        .spawn(serve);
    thread.map(drop).inspect_err(|_| clients.forget(id))
}

/// Answers requests in order, until the client leaves or sends one that is too long.
fn serve(stream: &UnixStream, id: u64, clients: &Clients, mut reader: Reader) -> io::Result<()> {
    let input = BufReader::new(stream);
    converse(input, stream, &mut reader, || clients.note_request(id))?;
    // This fails if the client has already gone, which does no harm.
    let _ = stream.shutdown(Shutdown::Both);
    Ok(())
}

/// As [`serve`], with any input and output. Calls `noted` before each request of valid length.
pub(super) fn converse(
    mut input: impl BufRead,
    mut output: impl Write,
    reader: &mut Reader,
    noted: impl Fn(),
) -> io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut request = input.by_ref().take(MAX_REQUEST);
        if request.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let too_long = line.len() as u64 == MAX_REQUEST && line.last() != Some(&b'\n');
        let result = if too_long {
            Err(anyhow::anyhow!("a request has at most {MAX_REQUEST} bytes"))
        } else {
            noted();
            answer(&line, reader)
        };
        let mut said = serde_json::to_vec(&response(result))?;
        said.push(b'\n');
        output.write_all(&said)?;
        if too_long {
            return Ok(());
        }
    }
}

fn answer(line: &[u8], reader: &mut Reader) -> Result<Value> {
    let request = serde_json::from_slice(line).context("this is not a request")?;
    reader(&request)
}

/// Wraps the answer or the error in the format of `scx_stats`.
fn response(result: Result<Value>) -> StatsResponse {
    let (errno, value) = match result {
        Ok(value) => (0, value),
        Err(error) => (Errno::EINVAL as i32, Value::String(format!("{error:#}"))),
    };
    StatsResponse {
        errno,
        args: BTreeMap::from([("resp".to_owned(), value)]),
    }
}

/// The connected clients.
#[derive(Default)]
struct Clients(Mutex<Connected>);

#[derive(Default)]
struct Connected {
    clients: BTreeMap<u64, Client>,
    /// Count of connections and requests so far, used as a clock.
    now: u64,
}

struct Client {
    stream: UnixStream,
    /// Value of `now` at its last request, if any.
    asked: Option<u64>,
}

impl Client {
    /// Closes its connection, which ends its thread.
    fn hang_up(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl Clients {
    fn lock(&self) -> MutexGuard<'_, Connected> {
        // The data are consistent at all times, so a poisoned lock does no harm.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a client. If there are too many, disconnects another: the oldest without any
    /// request, otherwise the one whose last request is oldest.
    fn take(&self, stream: UnixStream) -> u64 {
        let mut all = self.lock();
        while all.clients.len() >= CLIENTS {
            let idle = all.clients.iter().min_by_key(|(id, one)| (one.asked, **id));
            let idle = idle.map(|(id, _)| *id);
            let gone = idle.and_then(|id| all.clients.remove(&id));
            gone.iter().for_each(Client::hang_up);
        }
        all.now += 1;
        let id = all.now;
        all.clients.insert(
            id,
            Client {
                stream,
                asked: None,
            },
        );
        id
    }

    fn note_request(&self, id: u64) {
        let mut all = self.lock();
        all.now += 1;
        let now = all.now;
        if let Some(client) = all.clients.get_mut(&id) {
            client.asked = Some(now);
        }
    }

    fn forget(&self, id: u64) {
        self.lock().clients.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::resource::{getrlimit, setrlimit, Resource};
    use scx_stats::StatsClient;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicU64, Ordering};
    use tempfile::TempDir;

    struct Bench {
        server: Server,
        path: PathBuf,
        _dir: TempDir,
    }

    /// Each client gets the number of its requests so far; a request for "nothing" is an error.
    fn bench() -> Bench {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("root/stats");
        let server = Server::launch(&path, |_| {
            let mut asked = 0;
            Box::new(move |request| {
                anyhow::ensure!(request.req != "nothing", "nothing is not a request");
                asked += 1;
                Ok(asked.into())
            })
        });
        Bench {
            server: server.unwrap(),
            path,
            _dir: dir,
        }
    }

    impl Bench {
        fn client(&self) -> StatsClient {
            let client = StatsClient::new().set_path(&self.path);
            client.connect(Some(60_000)).unwrap()
        }

        fn raw(&self) -> UnixStream {
            let stream = UnixStream::connect(&self.path).unwrap();
            let patience = Some(Duration::from_secs(60));
            stream.set_read_timeout(patience).unwrap();
            stream.set_write_timeout(patience).unwrap();
            stream
        }
    }

    fn ask(client: &mut StatsClient) -> u64 {
        client.request("stats", Vec::new()).unwrap()
    }

    /// Returns everything that the server sends until it closes the connection.
    fn rest_of(mut stream: UnixStream) -> String {
        let mut said = String::new();
        match stream.read_to_string(&mut said) {
            // Data sent after the close were lost.
            Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}"),
            _ => said,
        }
    }

    #[test]
    fn each_client_has_a_reader_of_its_own() {
        let bench = bench();
        let (mut one, mut other) = (bench.client(), bench.client());
        assert_eq!((ask(&mut one), ask(&mut one)), (1, 2));
        assert_eq!((ask(&mut other), ask(&mut one)), (1, 3));
    }

    #[test]
    fn the_socket_is_private() {
        let bench = bench();
        let mode = fs::metadata(&bench.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn an_invalid_request_is_refused_and_the_client_continues() {
        let bench = bench();
        let mut client = bench.client();
        let refused = client.request::<u64>("nothing", Vec::new()).unwrap_err();
        assert!(format!("{refused:?}").contains("nothing is not a request"));
        assert_eq!(ask(&mut client), 1);
        let mut raw = bench.raw();
        for line in [
            &b"\n"[..],
            b"{}\n",
            b"\xff\0\n",
            b"[[[[\n",
            b"{\"req\":7}\n",
        ] {
            raw.write_all(line).unwrap();
        }
        raw.shutdown(Shutdown::Write).unwrap();
        let said = rest_of(raw);
        assert_eq!(said.matches("this is not a request").count(), 5, "{said}");
        assert_eq!(said.lines().count(), 5);
    }

    #[test]
    fn an_endless_line_is_not_read_to_its_end() {
        let bench = bench();
        let mut endless = bench.raw();
        let mut written = 0;
        // More than the socket holds, so writing fails once nobody reads.
        while written < 64 << 20 && endless.write_all(&[b'x'; 65536]).is_ok() {
            written += 65536;
        }
        assert!(written < 64 << 20, "all of it was accepted");
        assert_eq!(ask(&mut bench.client()), 1);
    }

    #[test]
    fn a_thousand_connections_are_handled() {
        allow_descriptors(4096);
        let bench = bench();
        let mut honest = bench.client();
        assert_eq!(ask(&mut honest), 1);
        let crowd: Vec<UnixStream> = (0..1000).map(|_| bench.raw()).collect();
        assert_eq!(ask(&mut honest), 2);
        assert_eq!(ask(&mut bench.client()), 1);
        assert!(bench.server.connected() <= CLIENTS);
        // The first client has been disconnected.
        let first = crowd.into_iter().next().unwrap();
        assert_eq!(rest_of(first), "");
    }

    fn allow_descriptors(count: u64) {
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        setrlimit(Resource::RLIMIT_NOFILE, soft.max(hard.min(count)), hard).unwrap();
    }

    #[test]
    fn disconnected_clients_are_forgotten() {
        let bench = bench();
        for _ in 0..100 {
            assert_eq!(ask(&mut bench.client()), 1);
        }
        while bench.server.connected() > 0 {
            thread::yield_now();
        }
    }

    #[test]
    fn a_late_answer_goes_to_no_other_client() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("stats");
        let asked = Arc::new(AtomicU64::new(0));
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let wait = Arc::new(Mutex::new(wait));
        let count = Arc::clone(&asked);
        let _server = Server::launch(&path, move |_| {
            let (count, wait) = (Arc::clone(&count), Arc::clone(&wait));
            Box::new(move |_| {
                let number = count.fetch_add(1, Ordering::SeqCst);
                if number == 0 {
                    let _ = wait.lock().unwrap().recv();
                }
                Ok(number.into())
            })
        })
        .unwrap();
        let mut impatient = StatsClient::new().set_path(&path).connect(Some(1)).unwrap();
        assert!(impatient.request::<u64>("stats", Vec::new()).is_err());
        while asked.load(Ordering::SeqCst) == 0 {
            thread::yield_now();
        }
        drop(impatient);
        go.send(()).unwrap();
        let mut next = StatsClient::new()
            .set_path(&path)
            .connect(Some(60_000))
            .unwrap();
        assert_eq!((ask(&mut next), ask(&mut next)), (1, 2));
    }

    #[test]
    fn the_end_of_the_server_closes_its_connections() {
        let Bench { server, path, _dir } = bench();
        let mut client = StatsClient::new()
            .set_path(&path)
            .connect(Some(60_000))
            .unwrap();
        assert_eq!(ask(&mut client), 1);
        drop(server);
        assert!(client.request::<u64>("stats", Vec::new()).is_err());
        let refused = UnixStream::connect(&path).unwrap_err();
        assert!(matches!(
            refused.kind(),
            ErrorKind::ConnectionRefused | ErrorKind::NotFound
        ));
    }
}
