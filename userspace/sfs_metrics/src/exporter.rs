//! The thread that answers requests for metrics, one after the other, and writes the textfile. It
//! sleeps until somebody asks or the textfile is due.

use std::collections::HashMap;
use std::fs::{self, Permissions};
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{bail, Context, Result};
use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};
use sfs_statistics::{Answer as Answered, Asker, Export, Request as Question};
use tracing::{debug, warn};

use crate::catalogue;
use crate::form::Form;
use crate::http::{self, Answer, Request};
use crate::listener::{Connection, Listener};
use crate::MetricsOptions;

/// Interval at which the textfile is written.
const TEXTFILE_EVERY: Duration = Duration::from_secs(15);

/// Longest wait for the control loop. Prometheus waits for 10 s by default.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// Age at which values are asked for again. However often somebody asks, the control loop answers
/// once a second.
const FRESH: Duration = Duration::from_secs(1);

/// Pause after each connection. Together with `FRESH` it bounds what a client can cost: this thread
/// is the loader's, which gets CPUs promptly.
const PAUSE: Duration = Duration::from_millis(10);

/// Delay before the next attempt to accept if descriptors have run out.
const RETRY: Duration = Duration::from_millis(100);

/// Stack size of the thread, in bytes. Answers are on the heap.
const STACK_BYTES: usize = 256 << 10;

/// The exporter. Dropping it ends it.
pub struct Exporter {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    end: EventFd,
    /// The connection that is served, to be hung up at the end.
    served: Mutex<Option<Connection>>,
}

impl Shared {
    fn served(&self) -> MutexGuard<'_, Option<Connection>> {
        // The value is consistent at all times, so a poisoned lock does no harm.
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Exporter {
    /// Starts the exporter, if the options want one. It asks the control loop by `asker`.
    ///
    /// # Errors
    ///
    /// The socket or the thread cannot be created.
    pub fn launch(options: &MetricsOptions, asker: Asker) -> Result<Option<Self>> {
        if !options.are_wanted() {
            return Ok(None);
        }
        let open = |address| Listener::open(address, options.metrics_mode);
        let listener = options.metrics_listen.as_ref().map(open).transpose()?;
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        let end = EventFd::from_value_and_flags(0, flags)
            .context("cannot create a descriptor for metrics")?;
        let shared = Arc::new(Shared {
            end,
            served: Mutex::new(None),
        });
        let source = Source {
            asker,
            asked_at: None,
            encoded: HashMap::new(),
            export: Export::default(),
        };
        let textfile = options.metrics_textfile.clone().map(Textfile::new);
        let thread = thread::Builder::new()
            .name("sfs_metrics".into())
            .stack_size(STACK_BYTES)
            .spawn({
                let shared = Arc::clone(&shared);
                move || serve(&shared, listener.as_ref(), source, textfile)
            })
            .context("cannot start the thread for metrics")?;
        Ok(Some(Self {
            shared,
            thread: Some(thread),
        }))
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        let _ = self.shared.end.write(1);
        self.shared.served().iter().for_each(Connection::hang_up);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Serves until the end.
fn serve(
    shared: &Shared,
    listener: Option<&Listener>,
    mut source: Source,
    mut textfile: Option<Textfile>,
) {
    loop {
        let due = textfile.as_ref().map(|file| file.due);
        match wait(shared, listener, due) {
            Ok(Ready { end: true, .. }) => return,
            Ok(Ready { client: true, .. }) => serve_next(shared, listener, &mut source),
            Ok(_) => {}
            Err(error) => return warn!("metrics are no longer served: {error}"),
        }
        if let Some(file) = textfile.as_mut() {
            file.write_if_due(&mut source);
        }
    }
}

/// What is ready.
struct Ready {
    end: bool,
    client: bool,
}

/// Waits until the end, the next client, or the time `due`.
fn wait(shared: &Shared, listener: Option<&Listener>, due: Option<Instant>) -> Result<Ready> {
    let mut fds = vec![PollFd::new(shared.end.as_fd(), PollFlags::POLLIN)];
    fds.extend(listener.map(|one| PollFd::new(one.as_fd(), PollFlags::POLLIN)));
    let left = due.map(|due| due.saturating_duration_since(Instant::now()));
    let timeout = match left {
        // Rounded up: a poll of 0 ms just before the time would spin.
        Some(left) => PollTimeout::try_from(left + Duration::from_micros(999))?,
        None => PollTimeout::NONE,
    };
    match poll(&mut fds, timeout) {
        Ok(_) | Err(Errno::EINTR) => {}
        Err(error) => return Err(error.into()),
    }
    let is_ready = |fd: Option<&PollFd<'_>>| fd.is_some_and(|fd| fd.any().unwrap_or(true));
    Ok(Ready {
        end: is_ready(fds.first()),
        client: is_ready(fds.get(1)),
    })
}

/// Serves the next client, if it is still there.
fn serve_next(shared: &Shared, listener: Option<&Listener>, source: &mut Source) {
    match listener.map_or(Ok(None), Listener::accept) {
        Ok(Some(mut client)) => {
            if let Err(error) = serve_client(shared, &mut client, source) {
                debug!("a client of the metrics has gone: {error:#}");
            }
            client.hang_up();
            *shared.served() = None;
            thread::sleep(PAUSE);
        }
        Ok(None) => {}
        Err(error) => {
            debug!("cannot accept a client of the metrics: {error}");
            thread::sleep(RETRY);
        }
    }
}

fn serve_client(shared: &Shared, client: &mut Connection, source: &mut Source) -> Result<()> {
    *shared.served() = Some(client.try_clone()?);
    let (answer, is_head) = match http::read(client)? {
        Ok(request) => (answer(&request, source), request.method == "HEAD"),
        Err(refusal) => (refusal, false),
    };
    Ok(http::write(client, &answer, is_head)?)
}

fn answer(request: &Request, source: &mut Source) -> Answer {
    if !["GET", "HEAD"].contains(&request.method.as_str()) {
        return Answer::line("405 Method Not Allowed", "only GET and HEAD are answered");
    }
    let path = request.path.split('?').next().unwrap_or_default();
    if path != "/metrics" {
        return Answer::line("404 Not Found", "the metrics of scx_sfs are at /metrics");
    }
    let form = Form::accepted(&request.accept);
    match source.metrics(form) {
        Ok(body) => Answer {
            status: "200 OK",
            content_type: form.content_type(),
            body,
        },
        Err(error) => Answer::line("503 Service Unavailable", &format!("no metrics: {error:#}")),
    }
}

/// Where the metrics come from.
struct Source {
    asker: Asker,
    asked_at: Option<Instant>,
    export: Export,
    /// The same in each format that somebody has asked for.
    encoded: HashMap<Form, Vec<u8>>,
}

impl Source {
    /// Returns metrics that are at most a second old.
    fn metrics(&mut self, form: Form) -> Result<Vec<u8>> {
        if self.asked_at.is_none_or(|at| at.elapsed() >= FRESH) {
            let answered = self.asker.ask_within(Question::Export, ANSWER_LIMIT)?;
            let Answered::Export(export) = answered else {
                bail!("the control loop gave an unexpected answer");
            };
            self.export = *export;
            self.encoded.clear();
            self.asked_at = Some(Instant::now());
        }
        if let Some(bytes) = self.encoded.get(&form) {
            return Ok(bytes.clone());
        }
        let bytes = form.encode(catalogue::families(&self.export))?;
        self.encoded.insert(form, bytes.clone());
        Ok(bytes)
    }
}

/// The file for node_exporter. Dropping it removes the file: old values must not look like new
/// ones.
struct Textfile {
    path: PathBuf,
    due: Instant,
    complained: bool,
}

impl Textfile {
    fn new(path: PathBuf) -> Self {
        Self {
            path,
            due: Instant::now(),
            complained: false,
        }
    }

    fn write_if_due(&mut self, source: &mut Source) {
        if self.due > Instant::now() {
            return;
        }
        self.due = Instant::now() + TEXTFILE_EVERY;
        let written = source
            .metrics(Form::Text)
            .and_then(|bytes| write_whole(&self.path, &bytes));
        match written {
            Ok(()) => self.complained = false,
            Err(error) if !self.complained => {
                self.complained = true;
                let file = self.path.display();
                warn!("cannot write the metrics to {file}: {error:#}");
            }
            Err(error) => debug!("cannot write the metrics: {error:#}"),
        }
    }
}

impl Drop for Textfile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Writes a file so that a reader sees either the old content or the new one. Every user may read
/// it. It need not survive a crash, so it is not synced.
fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut file = tempfile::Builder::new()
        .prefix(".scx_sfs-")
        .permissions(Permissions::from_mode(0o644))
        .tempfile_in(folder)
        .context("cannot create a new file beside it")?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}
