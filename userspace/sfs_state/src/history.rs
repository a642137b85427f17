//! State that a loader leaves for the next one: when schedulers were loaded since boot, how the
//! last one ended, and when the kernel ejected one. It is a small file below /run, which is
//! empty after a boot.
//!
//! The times tell which processes have been functions: those started while a scheduler was
//! loaded. They are compared with a process's start time and not with its id, so that a reused
//! id causes no confusion.

use std::fs::{self, DirBuilder};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{bail, Context, Result};
use nix::time::{clock_gettime, ClockId};
use serde::{Deserialize, Serialize};
use tracing::{info, warn};

use sfs_bpf::bpf_intf::SFS_MAX_SPANS;
use sfs_bpf::exit::End;
use sfs_bpf::kernel::Span;

use crate::save::write_whole;

/// Path of the file, except in tests.
const FILE: &str = "/run/scx_sfs/history.json";

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// A longer file cannot come from a loader.
const MOST_BYTES: u64 = 64 * 1024;

/// Number of spans kept, the latest ones.
const MOST_SPANS: usize = SFS_MAX_SPANS as usize;

/// Ejections count for this long.
const WINDOW: Duration = Duration::from_secs(3600);

/// Number of ejections within the window after which the service gives up.
pub const MOST_EJECTIONS: usize = 3;

/// Pauses of a service after the first and the second ejection within the window, counted from
/// the ejection.
const PAUSES: [Duration; MOST_EJECTIONS - 1] = [Duration::from_secs(10), Duration::from_secs(60)];

/// A service that is away for at most this long is being restarted or upgraded.
/// Processes started meanwhile are functions, too.
const BRIDGED: Duration = Duration::from_secs(300);

/// Represents an unknown end.
const FOR_EVER: u64 = u64::MAX;

/// How a scheduler ended, and since when the kernel's own one is in charge (ns of
/// CLOCK_MONOTONIC), if that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Exit {
    end: End,
    at: Option<u64>,
}

/// The content of the file.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    boot: String,
    /// The last one has no end while a scheduler is loaded, or if the loader was killed.
    spans: Vec<Span>,
    /// Times of the last few ejections by the kernel.
    ejections: Vec<u64>,
    last: Option<Exit>,
}

/// The record of earlier schedulers, and its file.
#[derive(Debug)]
pub struct History {
    file: PathBuf,
    record: Record,
}

impl History {
    /// Reads the state of earlier loaders. Unreadable state is logged and treated as empty.
    pub fn open() -> Self {
        Self::open_at(Path::new(FILE), &boot_id())
    }

    /// As `open()`, with another file and boot id: for tests and fuzz targets.
    pub fn open_at(file: &Path, boot: &str) -> Self {
        let fresh = || Record {
            boot: boot.to_owned(),
            ..Record::default()
        };
        let record = match read(file) {
            Ok(Some(record)) if record.boot == boot => record,
            Ok(_) => fresh(),
            Err(error) => {
                warn!(
                    "the history of earlier schedulers is unusable: {error:#}; existing \
                     processes are not functions"
                );
                fresh()
            }
        };
        let mut history = Self {
            file: file.to_owned(),
            record,
        };
        history.note_kill();
        history
    }

    /// A span without an end belongs to a loader that could not write one.
    fn note_kill(&mut self) {
        let Some(span) = self.record.spans.last() else {
            return;
        };
        if span.to == FOR_EVER {
            self.record.last = Some(Exit {
                end: End::Killed,
                at: None,
            });
        }
    }

    /// Notes that a scheduler is about to be loaded, by a service or not. Returns the spans in
    /// which existing functions were started.
    pub fn begin(&mut self, now: u64, is_service: bool) -> Vec<Span> {
        let is_restart = is_service
            || matches!(
                self.record.last,
                Some(Exit {
                    end: End::Hotplug,
                    ..
                })
            );
        let bridged = if is_restart {
            BRIDGED.as_nanos() as u64
        } else {
            0
        };
        let spans = &mut self.record.spans;
        let goes_on = |span: &Span| span.to == FOR_EVER || now - span.to.min(now) <= bridged;
        match spans.last_mut().filter(|span| goes_on(span)) {
            Some(span) => span.to = FOR_EVER,
            None => {
                if spans.len() == MOST_SPANS {
                    spans.remove(0);
                }
                let to = FOR_EVER;
                spans.push(Span { from: now, to });
            }
        }
        let past = |span: &&Span| span.from < now;
        let past = spans.iter().filter(past).copied().collect();
        self.save();
        past
    }

    /// Notes that the scheduler has ended. It began to leave the machine to the kernel's own one
    /// at `left`; None: it was never in charge.
    pub fn end(&mut self, now: u64, end: End, left: Option<u64>) {
        if let Some(span) = self.record.spans.last_mut() {
            span.to = now;
        }
        if end.is_ejection() {
            if self.record.ejections.len() >= MOST_EJECTIONS {
                self.record.ejections.remove(0);
            }
            self.record.ejections.push(now);
        }
        let at = left.or(self.record.last.and_then(|last| last.at));
        self.record.last = Some(Exit { end, at });
        self.save();
    }

    /// Returns for how long the kernel's own scheduler has been in charge since the previous one
    /// of this boot began to leave. None without one, or if it was killed: then nobody has
    /// written the time.
    fn away(&self, now: u64) -> Option<Duration> {
        let since = self.record.last?.at?;
        Some(Duration::from_nanos(now.saturating_sub(since)))
    }

    /// Tells for how long the kernel's own scheduler was in charge, if that is known. Returns the
    /// same as a status for the service manager.
    pub fn tell_away(&self, now: u64) -> String {
        let Some(away) = self.away(now) else {
            return "scheduling".to_owned();
        };
        let seconds = away.as_secs_f64();
        info!("back after {seconds:.1} s on the kernel's own scheduler");
        format!("scheduling, after {seconds:.1} s on the kernel's own scheduler")
    }

    /// Returns how often the kernel ejected a scheduler within the hour before `now`, at most
    /// `MOST_EJECTIONS`.
    pub fn ejections(&self, now: u64) -> usize {
        let recent = |at: &&u64| now.saturating_sub(**at) <= WINDOW.as_nanos() as u64;
        self.record.ejections.iter().filter(recent).count()
    }

    /// Returns how long a service must wait before it loads again.
    pub fn pause(&self, now: u64) -> Duration {
        let Some(last) = self.record.ejections.last() else {
            return Duration::ZERO;
        };
        let pause = match self.ejections(now) {
            0 => Duration::ZERO,
            count => PAUSES[count.min(PAUSES.len()) - 1],
        };
        pause.saturating_sub(Duration::from_nanos(now.saturating_sub(*last)))
    }

    /// Returns how the previous scheduler ended, if there was one since boot.
    pub fn last_end(&self) -> Option<End> {
        self.record.last.map(|last| last.end)
    }

    /// A failure to write is logged and does not prevent scheduling.
    fn save(&self) {
        if let Err(error) = self.try_save() {
            let file = self.file.display();
            warn!("cannot write {file}: {error:#}; a restart will not recognize warm processes");
        }
    }

    fn try_save(&self) -> Result<()> {
        let bytes = serde_json::to_vec(&self.record)?;
        if let Some(folder) = self.file.parent() {
            let made = DirBuilder::new().mode(0o755).create(folder);
            made.or_else(|error| match error.kind() {
                ErrorKind::AlreadyExists => Ok(()),
                _ => Err(error),
            })?;
        }
        write_whole(&self.file, &bytes)
    }
}

/// Returns the time in ns of the clock used for process start times.
pub fn now() -> u64 {
    // It cannot fail on Linux.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |time| {
        time.tv_sec().cast_unsigned() * 1_000_000_000 + time.tv_nsec().cast_unsigned()
    })
}

fn boot_id() -> String {
    fs::read_to_string(BOOT_ID).map_or_else(|_| String::new(), |id| id.trim().to_owned())
}

/// Reads the file, if it exists. It must be a regular file, no longer than a loader writes.
fn read(file: &Path) -> Result<Option<Record>> {
    let opened = fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc_flags())
        .open(file);
    let opened = match opened {
        Ok(opened) => opened,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).context("it cannot be opened"),
    };
    if !opened.metadata()?.is_file() {
        bail!("it is not a regular file");
    }
    let mut bytes = Vec::new();
    opened.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        bail!("it is too long");
    }
    let record: Record = serde_json::from_slice(&bytes).context("it is damaged")?;
    if record.spans.len() > MOST_SPANS || record.ejections.len() > MOST_EJECTIONS {
        bail!("it has too many entries");
    }
    Ok(Some(record))
}

/// Links are not followed, and a pipe does not block the loader.
fn libc_flags() -> i32 {
    use nix::fcntl::OFlag;
    (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC).bits()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{symlink, PermissionsExt};

    const SECOND: u64 = 1_000_000_000;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    fn open(folder: &tempfile::TempDir) -> History {
        History::open_at(&folder.path().join("new/history.json"), "boot")
    }

    #[test]
    fn the_first_has_nothing_behind_it() {
        let folder = folder();
        let mut history = open(&folder);
        assert_eq!(history.last_end(), None);
        assert_eq!(history.tell_away(7), "scheduling");
        assert_eq!(history.begin(5 * SECOND, true), []);
        let file = folder.path().join("new/history.json");
        let mode = fs::metadata(file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_stop_ends_what_are_functions_and_a_service_bridges_a_restart() {
        for (is_service, gap, expected) in [
            (false, 2, vec![(5, 9)]),
            (true, 2, vec![(5, u64::MAX)]),
            (true, 301, vec![(5, 9)]),
        ] {
            let folder = folder();
            let mut history = open(&folder);
            history.begin(5, is_service);
            history.end(9, End::Stopped, Some(8));
            let mut next = open(&folder);
            assert_eq!(next.last_end(), Some(End::Stopped));
            assert_eq!(next.away(11), Some(Duration::from_nanos(3)));
            let words = "scheduling, after 2.0 s on the kernel's own scheduler";
            assert_eq!(next.tell_away(8 + 2 * SECOND), words);
            // A start that fails leaves the kernel's own scheduler in charge.
            open(&folder).end(12, End::Failed, None);
            assert_eq!(open(&folder).away(14), Some(Duration::from_nanos(6)));
            let past = next.begin(9 + gap * SECOND, is_service);
            let past: Vec<_> = past.iter().map(|span| (span.from, span.to)).collect();
            // The new span is not part of the past.
            assert_eq!(past, expected, "{is_service} {gap}");
        }
    }

    #[test]
    fn a_loader_that_was_killed_leaves_no_end() {
        let folder = folder();
        open(&folder).begin(5, false);
        let mut next = open(&folder);
        assert_eq!(next.last_end(), Some(End::Killed));
        assert_eq!(next.away(9), None);
        let past = next.begin(7000 * SECOND, false);
        assert_eq!(
            past,
            [Span {
                from: 5,
                to: u64::MAX
            }]
        );
    }

    #[test]
    fn pauses_grow_and_three_in_an_hour_are_too_many() {
        let mut history = open(&folder());
        assert_eq!(history.pause(0), Duration::ZERO);
        for (at, count, pause) in [(100, 1, 10), (200, 2, 60), (300, 3, 60)] {
            history.end(at * SECOND, End::Stalled, Some(at * SECOND));
            assert_eq!(history.ejections(at * SECOND), count);
            assert_eq!(history.pause(at * SECOND), Duration::from_secs(pause));
        }
        assert_eq!(history.pause(305 * SECOND), Duration::from_secs(55));
        assert_eq!(history.pause(361 * SECOND), Duration::ZERO);
        assert_eq!(history.ejections(3801 * SECOND), 1);
        assert_eq!(history.pause(3901 * SECOND), Duration::ZERO);
        history.end(3950 * SECOND, End::SysRq, Some(3950 * SECOND));
        assert_eq!(history.ejections(3950 * SECOND), 0);
    }

    #[test]
    fn it_stays_small() {
        let folder = folder();
        let mut history = open(&folder);
        for i in 0..1000 {
            history.begin(2 * i, false);
            history.end(2 * i + 1, End::Error, Some(2 * i + 1));
        }
        let past = open(&folder).begin(9999, false);
        assert_eq!(past.len(), MOST_SPANS - 1);
        assert_eq!(
            past.last(),
            Some(&Span {
                from: 1998,
                to: 1999
            })
        );
        let file = folder.path().join("new/history.json");
        assert!(fs::metadata(file).unwrap().len() < 4096);
    }

    #[test]
    fn an_invalid_history_counts_as_none() {
        let folder = folder();
        let file = folder.path().join("history.json");
        let good = r#"{"boot":"other","spans":[{"from":1,"to":2}],"ejections":[1],"last":null}"#;
        let many = format!(
            r#"{{"boot":"boot","spans":[],"ejections":[{}1],"last":null}}"#,
            "1,".repeat(9)
        );
        for content in ["", "{", "[]", good, &many, &" ".repeat(70_000)] {
            fs::write(&file, content).unwrap();
            let mut history = History::open_at(&file, "boot");
            assert_eq!(history.ejections(5), 0, "{content}");
            assert_eq!(history.begin(5, true), [], "{content}");
        }
        fs::remove_file(&file).unwrap();
        fs::write(folder.path().join("target"), good.replace("other", "boot")).unwrap();
        symlink("target", &file).unwrap();
        assert_eq!(History::open_at(&file, "boot").ejections(5), 0);
    }
}
