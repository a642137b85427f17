//! Statistics: what is published, how it is served, and how it is printed.

mod server;

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::mpsc::{channel, sync_channel, Receiver, Sender, SyncSender};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{bail, Context, Result};
use nix::sys::eventfd::{EfdFlags, EventFd};
use scx_sfs::hints::HintCounters;
use scx_stats::prelude::*;
use scx_stats_derive::{stat_doc, Stats};
use serde::{Deserialize, Serialize};
use sfs_policy::{Counters, Mode};

use crate::bpf_intf::*;
use crate::exit::End;
use crate::learn::FunctionReport;
use crate::options::Policy;
use server::Server;

/// What the statistics server publishes. Counters are since load in the first
/// answer on a connection, and since the answer before in the following ones.
#[stat_doc]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Stats)]
#[stat(top)]
pub struct Metrics {
    #[stat(desc = "Policy in force: sfs, learned or fair; sfs also where learned has failed")]
    pub policy: String,
    #[stat(desc = "Mode: 0 FILTER, 1 fair-only (overload)")]
    pub mode: u64,
    #[stat(desc = "S, the CPU time that a new invocation may use in FILTER, in microseconds")]
    pub slice_us: u64,
    #[stat(desc = "Mean IAT that S was computed from, in microseconds; 0 before the first window")]
    pub mean_iat_us: u64,
    #[stat(desc = "CPUs that functions may use")]
    pub cpus: u64,
    #[stat(desc = "Invocations begun")]
    pub arrivals: u64,
    #[stat(desc = "Invocations ended")]
    pub completions: u64,
    #[stat(desc = "Invocations ended within their credit")]
    pub completions_in_credit: u64,
    #[stat(desc = "Invocations demoted to FAIR, their credit used up")]
    pub demotions: u64,
    #[stat(desc = "FAIR turns cut short for FILTER")]
    pub preemptions: u64,
    #[stat(desc = "Wake-ups of invocations that had blocked with credit left")]
    pub io_returns: u64,
    #[stat(desc = "Invocations begun by the start of a process")]
    pub begun_by_fork: u64,
    #[stat(desc = "Invocations begun by exec")]
    pub begun_by_exec: u64,
    #[stat(desc = "Invocations begun by the return of a connection from accept")]
    pub begun_by_accept: u64,
    #[stat(desc = "Invocations begun by a receive that was waited for")]
    pub begun_by_receive: u64,
    #[stat(desc = "Invocations begun by a hint")]
    pub begun_by_hint: u64,
    #[stat(desc = "Invocations begun by a wake-up after a long sleep")]
    pub begun_by_idle: u64,
    #[stat(desc = "Boundaries that belonged to an invocation begun just before")]
    pub merged: u64,
    #[stat(desc = "Cgroups known as sandboxes (--cgroup)")]
    pub sandboxes: u64,
    #[stat(desc = "Of these, those that there is no room for (--max-sandboxes)")]
    pub sandboxes_left_out: u64,
    #[stat(desc = "Functions that something has been learned of (--policy learned)")]
    pub functions: u64,
    #[stat(desc = "Rank tables that they share; 0 as long as nothing is ranked")]
    pub rank_tables: u64,
    #[stat(desc = "Times that FILTER work got a CPU")]
    pub filter_starts: u64,
    #[stat(desc = "Mean queueing delay of these, in microseconds")]
    pub queue_delay_mean_us: f64,
    #[stat(
        desc = "99th percentile of these since load, in microseconds (upper end of a power of two)"
    )]
    pub queue_delay_p99_us: u64,
    #[stat(desc = "Longest of these since load, in microseconds")]
    pub queue_delay_max_us: u64,
    #[stat(desc = "FAIR turns given because FAIR had waited long enough")]
    pub fair_turns_due: u64,
    #[stat(desc = "Switches to fair-only mode")]
    pub overloads: u64,
    #[stat(desc = "Tasks moved between FILTER and FAIR by a switch of the mode")]
    pub moved: u64,
    #[stat(desc = "Times that work with credit ran in FAIR since its tenant had had its share")]
    pub in_debt: u64,
    #[stat(desc = "Invocations that are not learned from since their tenant has very many")]
    pub unlearned: u64,
    #[stat(desc = "Tasks moved to FAIR by the kernel half because the loader did not answer")]
    pub relieved: u64,
    #[stat(desc = "Times that a task was put first since it had waited for 5 s")]
    pub guarded: u64,
    #[stat(desc = "Wake-ups of kernel threads and of the loader")]
    pub system_wakeups: u64,
    #[stat(desc = "Wake-ups of daemons that found no idle CPU and were given a busy one")]
    pub prompt_wakeups: u64,
    #[stat(desc = "Times that a cgroup had used up its quota (cpu.max)")]
    pub throttled: u64,
    #[stat(desc = "FILTER tasks that a CPU took from another shard than its own")]
    pub shard_moves: u64,
    #[stat(desc = "Tasks queued for the one CPU that they may use")]
    pub pinned: u64,
    #[stat(desc = "Tasks run in FAIR because there was no memory for their context")]
    pub no_context: u64,
    #[stat(desc = "Events that did not fit into the ring buffer")]
    pub lost_events: u64,
    #[stat(desc = "Hints received")]
    pub hints: u64,
    #[stat(desc = "Hints that have begun an invocation")]
    pub hints_applied: u64,
    #[stat(
        desc = "Hints whose time of arrival cannot be true, or is known, or whose process started at another time"
    )]
    pub hints_stale: u64,
    #[stat(desc = "Hints for processes that are no functions")]
    pub hints_foreign: u64,
    #[stat(desc = "Hints for processes that there are not")]
    pub hints_dead: u64,
    #[stat(desc = "Hints that the kernel half could not be told of")]
    pub hints_failed: u64,
    #[stat(desc = "Lines, binary records and datagrams that are no hints")]
    pub hints_malformed: u64,
    #[stat(desc = "Datagrams with hints that the system has dropped (UDP)")]
    pub hints_dropped: u64,
    #[stat(desc = "Datagrams not read, since no hints are taken from their senders")]
    pub hints_denied: u64,
    #[stat(desc = "Hints dropped, since their sender sends more than --hint-rate")]
    pub hints_limited: u64,
    #[stat(desc = "Service times in hints that were ignored (--hint-service-time uses them)")]
    pub hints_service_ignored: u64,
    #[stat(desc = "Version and build of the loader")]
    pub build: String,
    #[stat(desc = "Seconds since the scheduler was loaded")]
    pub uptime_s: u64,
    #[stat(
        desc = "How the scheduler before has ended: stopped, failed, hotplug, stalled, error, sysrq, unloaded, killed; none: there was none since boot"
    )]
    pub last_exit: String,
    #[stat(desc = "Times that the kernel had ejected scx_sfs in the hour before it was loaded")]
    pub ejections: u64,
}

/// What is known of a run besides its counters.
pub struct RunInfo {
    loaded_at: Instant,
    /// How the scheduler before has ended, if there was one since boot.
    pub last_end: Option<End>,
    /// Ejections in the hour before.
    pub ejections: u64,
}

impl RunInfo {
    /// That of a scheduler that has just been loaded.
    pub fn now() -> Self {
        Self {
            loaded_at: Instant::now(),
            last_end: None,
            ejections: 0,
        }
    }
}

impl Metrics {
    /// Sums up the counters of all CPUs.
    pub fn new(per_cpu: &[sfs_stats], policy: &Counters, mode: Mode, sandboxes: u64) -> Self {
        let sum = |counter: sfs_counter| -> u64 {
            per_cpu.iter().map(|s| s.counter[counter as usize]).sum()
        };
        let starts = sum(sfs_counter_SFS_FILTER_STARTS);
        let delay_us = sum(sfs_counter_SFS_FILTER_DELAY_NS) as f64 / 1000.0;
        let longest = per_cpu.iter().map(|s| s.delay_max).max().unwrap_or(0);
        Self {
            mode: u64::from(mode == Mode::FairOnly),
            slice_us: policy.slice_ns / 1000,
            mean_iat_us: policy.mean_iat_ns.unwrap_or(0) / 1000,
            cpus: u64::from(policy.cpus),
            arrivals: sum(sfs_counter_SFS_ARRIVALS),
            completions: sum(sfs_counter_SFS_COMPLETIONS),
            completions_in_credit: sum(sfs_counter_SFS_COMPLETIONS_IN_CREDIT),
            demotions: sum(sfs_counter_SFS_DEMOTIONS),
            preemptions: sum(sfs_counter_SFS_PREEMPTIONS),
            io_returns: sum(sfs_counter_SFS_IO_RETURNS),
            begun_by_fork: sum(sfs_counter_SFS_BEGUN_FORK),
            begun_by_exec: sum(sfs_counter_SFS_BEGUN_EXEC),
            begun_by_accept: sum(sfs_counter_SFS_BEGUN_ACCEPT),
            begun_by_receive: sum(sfs_counter_SFS_BEGUN_RECEIVE),
            begun_by_hint: sum(sfs_counter_SFS_BEGUN_HINT),
            begun_by_idle: sum(sfs_counter_SFS_BEGUN_IDLE),
            merged: sum(sfs_counter_SFS_MERGED),
            sandboxes,
            sandboxes_left_out: 0,
            functions: 0,
            rank_tables: 0,
            filter_starts: starts,
            queue_delay_mean_us: mean(delay_us, starts),
            queue_delay_p99_us: percentile_us(per_cpu, 0.99),
            queue_delay_max_us: longest / 1000,
            fair_turns_due: sum(sfs_counter_SFS_FAIR_TURNS_DUE),
            overloads: policy.fair_only_entered,
            moved: sum(sfs_counter_SFS_MOVED),
            in_debt: sum(sfs_counter_SFS_IN_DEBT),
            unlearned: sum(sfs_counter_SFS_UNLEARNED),
            relieved: sum(sfs_counter_SFS_RELIEVED),
            guarded: sum(sfs_counter_SFS_GUARDED),
            system_wakeups: sum(sfs_counter_SFS_SYSTEM_WAKEUPS),
            prompt_wakeups: sum(sfs_counter_SFS_PROMPT_WAKEUPS),
            throttled: sum(sfs_counter_SFS_THROTTLED),
            shard_moves: sum(sfs_counter_SFS_SHARD_MOVES),
            pinned: sum(sfs_counter_SFS_PINNED),
            no_context: sum(sfs_counter_SFS_NO_CONTEXT),
            lost_events: sum(sfs_counter_SFS_LOST_EVENTS),
            ..Self::default()
        }
    }

    /// Adds what has been counted about hints.
    pub fn with_hints(self, hints: HintCounters) -> Self {
        Self {
            hints: hints.received,
            hints_applied: hints.applied,
            hints_stale: hints.stale,
            hints_foreign: hints.foreign,
            hints_dead: hints.dead,
            hints_failed: hints.failed,
            hints_malformed: hints.malformed,
            hints_dropped: hints.dropped,
            hints_denied: hints.denied,
            hints_limited: hints.limited,
            hints_service_ignored: hints.service_times_ignored,
            ..self
        }
    }

    /// Adds what is known of the run.
    pub fn with_run(self, run: &RunInfo) -> Self {
        let last_end = run.last_end.map(|end| end.to_string());
        Self {
            build: crate::version(),
            uptime_s: run.loaded_at.elapsed().as_secs(),
            last_exit: last_end.unwrap_or_else(|| "none".to_owned()),
            ejections: run.ejections,
            ..self
        }
    }

    /// Adds the policy in force.
    pub fn with_policy(self, policy: Policy) -> Self {
        Self {
            policy: policy.to_string(),
            ..self
        }
    }

    /// Adds how many of the sandboxes there is no room for.
    pub fn with_left_out(self, sandboxes: usize) -> Self {
        Self {
            sandboxes_left_out: sandboxes as u64,
            ..self
        }
    }

    /// Adds how much has been learned: functions, and tables that they share.
    pub fn with_learned(self, (functions, rank_tables): (usize, usize)) -> Self {
        Self {
            functions: functions as u64,
            rank_tables: rank_tables as u64,
            ..self
        }
    }

    /// Returns what has been counted since `earlier`: nothing of what has not grown.
    fn since(&self, earlier: &Self) -> Self {
        let starts = self.filter_starts.saturating_sub(earlier.filter_starts);
        let delay_us = self.queue_delay_mean_us * self.filter_starts as f64
            - earlier.queue_delay_mean_us * earlier.filter_starts as f64;
        Self {
            arrivals: self.arrivals.saturating_sub(earlier.arrivals),
            completions: self.completions.saturating_sub(earlier.completions),
            completions_in_credit: self
                .completions_in_credit
                .saturating_sub(earlier.completions_in_credit),
            demotions: self.demotions.saturating_sub(earlier.demotions),
            preemptions: self.preemptions.saturating_sub(earlier.preemptions),
            io_returns: self.io_returns.saturating_sub(earlier.io_returns),
            begun_by_fork: self.begun_by_fork.saturating_sub(earlier.begun_by_fork),
            begun_by_exec: self.begun_by_exec.saturating_sub(earlier.begun_by_exec),
            begun_by_accept: self.begun_by_accept.saturating_sub(earlier.begun_by_accept),
            begun_by_receive: self
                .begun_by_receive
                .saturating_sub(earlier.begun_by_receive),
            begun_by_hint: self.begun_by_hint.saturating_sub(earlier.begun_by_hint),
            begun_by_idle: self.begun_by_idle.saturating_sub(earlier.begun_by_idle),
            merged: self.merged.saturating_sub(earlier.merged),
            filter_starts: starts,
            queue_delay_mean_us: mean(delay_us, starts),
            fair_turns_due: self.fair_turns_due.saturating_sub(earlier.fair_turns_due),
            overloads: self.overloads.saturating_sub(earlier.overloads),
            moved: self.moved.saturating_sub(earlier.moved),
            in_debt: self.in_debt.saturating_sub(earlier.in_debt),
            unlearned: self.unlearned.saturating_sub(earlier.unlearned),
            relieved: self.relieved.saturating_sub(earlier.relieved),
            guarded: self.guarded.saturating_sub(earlier.guarded),
            system_wakeups: self.system_wakeups.saturating_sub(earlier.system_wakeups),
            prompt_wakeups: self.prompt_wakeups.saturating_sub(earlier.prompt_wakeups),
            throttled: self.throttled.saturating_sub(earlier.throttled),
            shard_moves: self.shard_moves.saturating_sub(earlier.shard_moves),
            pinned: self.pinned.saturating_sub(earlier.pinned),
            no_context: self.no_context.saturating_sub(earlier.no_context),
            lost_events: self.lost_events.saturating_sub(earlier.lost_events),
            hints: self.hints.saturating_sub(earlier.hints),
            hints_applied: self.hints_applied.saturating_sub(earlier.hints_applied),
            hints_stale: self.hints_stale.saturating_sub(earlier.hints_stale),
            hints_foreign: self.hints_foreign.saturating_sub(earlier.hints_foreign),
            hints_dead: self.hints_dead.saturating_sub(earlier.hints_dead),
            hints_failed: self.hints_failed.saturating_sub(earlier.hints_failed),
            hints_malformed: self.hints_malformed.saturating_sub(earlier.hints_malformed),
            hints_dropped: self.hints_dropped.saturating_sub(earlier.hints_dropped),
            hints_denied: self.hints_denied.saturating_sub(earlier.hints_denied),
            hints_limited: self.hints_limited.saturating_sub(earlier.hints_limited),
            hints_service_ignored: self
                .hints_service_ignored
                .saturating_sub(earlier.hints_service_ignored),
            ..self.clone()
        }
    }

    fn print<W: Write>(&self, out: &mut W) -> Result<()> {
        writeln!(
            out,
            "[{}] {:9} S {:>7} us | arrivals {:>6} done {:>6} in credit {:>6} demoted {:>5} | \
             delay mean {:>8.0} max {:>8} us | preempted {:>5} i/o {:>5} due {:>4} | overloads {} moved {} relieved {} | policy {}",
            crate::NAME,
            if self.mode == 0 { "filter" } else { "fair-only" },
            self.slice_us,
            self.arrivals,
            self.completions,
            self.completions_in_credit,
            self.demotions,
            self.queue_delay_mean_us,
            self.queue_delay_max_us,
            self.preemptions,
            self.io_returns,
            self.fair_turns_due,
            self.overloads,
            self.moved,
            self.relieved,
            sfs_text::word(&self.policy),
        )?;
        self.print_hints(out)
    }

    /// Prints nothing on machines without a platform that sends hints.
    fn print_hints<W: Write>(&self, out: &mut W) -> Result<()> {
        let lost = self.hints_malformed + self.hints_dropped + self.hints_denied;
        if self.hints + lost + self.hints_limited == 0 {
            return Ok(());
        }
        writeln!(
            out,
            "[{}] hints     {:>9} | applied {:>6} stale {:>6} foreign {:>6} dead {:>6} failed {:>6} | malformed {:>6} dropped {:>6} denied {:>6} limited {:>6}",
            crate::NAME,
            self.hints,
            self.hints_applied,
            self.hints_stale,
            self.hints_foreign,
            self.hints_dead,
            self.hints_failed,
            self.hints_malformed,
            self.hints_dropped,
            self.hints_denied,
            self.hints_limited,
        )?;
        Ok(())
    }
}

fn mean(sum: f64, count: u64) -> f64 {
    if count == 0 {
        0.0
    } else {
        sum.max(0.0) / count as f64
    }
}

/// Returns the upper end, in microseconds, of the bucket that holds the delay at
/// `share` (0 to 1) of all.
fn percentile_us(per_cpu: &[sfs_stats], share: f64) -> u64 {
    let bucket = |b: usize| -> u64 { per_cpu.iter().map(|s| s.delay[b]).sum() };
    let total: u64 = (0..SFS_DELAY_BUCKETS as usize).map(bucket).sum();
    let rank = (total as f64 * share).ceil() as u64;
    let mut seen = 0;
    for b in 0..SFS_DELAY_BUCKETS as usize {
        seen += bucket(b);
        if seen >= rank && seen > 0 {
            return 1u64 << b;
        }
    }
    0
}

/// Describes the statistics, for people.
///
/// # Errors
///
/// They cannot be written.
pub fn describe<W: Write>(out: &mut W) -> Result<()> {
    let data: StatsServerData<(), ()> = StatsServerData::new().add_meta(Metrics::meta());
    data.describe_meta(out, None)
}

/// What answers the requests of one client with what the control loop, by way of `ask`, has
/// to say.
fn reader(ask: impl Fn(Request) -> Result<Answer> + Send + 'static) -> server::Reader {
    let mut earlier = Metrics::default();
    Box::new(move |request| match request.req.as_str() {
        "stats_meta" => {
            let meta = Metrics::meta();
            Ok(serde_json::to_value(BTreeMap::from([(
                meta.name.clone(),
                meta,
            )]))?)
        }
        "stats" => match request.args.get("target").map_or("top", String::as_str) {
            "top" => {
                let Answer::Metrics(now) = ask(Request::Metrics)? else {
                    bail!(ANSWERED_ELSE);
                };
                let answer = now.since(&earlier);
                earlier = *now;
                answer.to_json()
            }
            "functions" => {
                let most = most_functions(request.args.get("count"))?;
                let Answer::Functions(reports) = ask(Request::Functions { most })? else {
                    bail!(ANSWERED_ELSE);
                };
                Ok(serde_json::to_value(reports)?)
            }
            other => bail!("there are no statistics {other:?}; want top or functions"),
        },
        other => bail!("there is no request {other:?}; want stats or stats_meta"),
    })
}

/// Returns what a client that sends `bytes`, and no more, gets from a control loop that
/// answers as `ask` does.
pub fn answers_to(
    bytes: &[u8],
    ask: impl Fn(Request) -> Result<Answer> + Send + 'static,
) -> Vec<u8> {
    let mut said = Vec::new();
    // A vector takes all.
    let _ = server::converse(bytes, &mut said, &mut reader(ask), || {});
    said
}

const ANSWERED_ELSE: &str = "the control loop has answered something else";

/// Most functions that are listed at once, so that the control loop, which picks them, does
/// nothing else for no more than milliseconds.
pub const MAX_FUNCTIONS: usize = 1000;

/// How many functions a client wants to know of.
fn most_functions(count: Option<&String>) -> Result<usize> {
    let Some(count) = count else {
        return Ok(MAX_FUNCTIONS);
    };
    let count: usize = count.parse().context("count is no whole number")?;
    Ok(count.min(MAX_FUNCTIONS))
}

/// What a reader may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// The counters.
    Metrics,
    /// What is known of the functions with most work.
    Functions {
        /// Most that are wanted.
        most: usize,
    },
}

/// What it gets.
#[derive(Debug)]
pub enum Answer {
    /// The counters.
    Metrics(Box<Metrics>),
    /// What is known of the functions with most work, these first.
    Functions(Vec<FunctionReport>),
}

/// A request, and where its answer goes.
type Asked = (Request, SyncSender<Answer>);

/// Where readers ask and the control loop answers. A poll can wait for requests, which it
/// cannot for a channel alone.
pub struct Desk {
    asked: Receiver<Asked>,
    asker: Asker,
}

/// A reader's end of it.
#[derive(Clone)]
struct Asker {
    queue: Sender<Asked>,
    wake: Arc<EventFd>,
}

impl Asker {
    /// Waits for the control loop's answer.
    fn ask(&self, what: Request) -> Result<Answer> {
        const GONE: &str = "the control loop has ended";
        let (answer, answered) = sync_channel(1);
        // The descriptor is written to once the request can be taken, so that none is lost.
        self.queue.send((what, answer)).context(GONE)?;
        self.wake.write(1).context("cannot wake the control loop")?;
        answered.recv().context(GONE)
    }
}

impl Desk {
    /// # Errors
    ///
    /// There are no more file descriptors.
    pub fn new() -> Result<Self> {
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        let wake = EventFd::from_value_and_flags(0, flags)
            .context("cannot make a descriptor for statistics")?;
        let (queue, asked) = channel();
        let wake = Arc::new(wake);
        Ok(Self {
            asked,
            asker: Asker { queue, wake },
        })
    }

    /// Answers those who have asked.
    fn answer(&self, answer: impl Fn(Request) -> Answer) {
        // Cleared first: what comes in between is answered now, and the next time finds
        // nothing.
        let _ = self.asker.wake.read();
        for (what, reader) in self.asked.try_iter() {
            // A reader that has gone meanwhile does not want the answer.
            let _ = reader.send(answer(what));
        }
    }
}

/// Where clients of every scheduler of the family look for one.
const SOCKET: &str = "/var/run/scx/root/stats";

/// The statistics server, and how the control loop hears of requests.
pub struct StatsBridge {
    desk: Desk,
    // Ends when it is dropped.
    _server: Server,
}

impl StatsBridge {
    /// Starts the server at the path that all scx schedulers use; only this user can
    /// connect.
    ///
    /// # Errors
    ///
    /// Its socket cannot be made.
    pub fn launch() -> Result<Self> {
        let desk = Desk::new()?;
        let asker = desk.asker.clone();
        let new_reader = move || {
            let asker = asker.clone();
            reader(move |what| asker.ask(what))
        };
        let server =
            Server::launch(Path::new(SOCKET), new_reader).context("cannot serve statistics")?;
        Ok(Self {
            desk,
            _server: server,
        })
    }

    /// Answers the readers that have asked.
    pub fn answer(&self, answer: impl Fn(Request) -> Answer) {
        self.desk.answer(answer);
    }
}

impl AsFd for StatsBridge {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.desk.asker.wake.as_fd()
    }
}

/// Time between two attempts to reach a scheduler that does not answer.
const RETRY: Duration = Duration::from_secs(1);

/// Prints the statistics of the running scheduler every `interval`, until
/// standard output is closed. Waits for one as long as none answers; `say` gets to know
/// that, and why, once each time.
///
/// # Errors
///
/// The statistics may not be read, or cannot be printed.
pub fn monitor(interval: Duration, mut say: impl FnMut(&str)) -> Result<()> {
    let mut server = None;
    let mut waiting = false;
    loop {
        match next_metrics(&mut server) {
            Ok(metrics) => {
                waiting = false;
                match metrics.print(&mut std::io::stdout()) {
                    Err(error) if is_broken_pipe(&error) => return Ok(()),
                    printed => printed?,
                }
                thread::sleep(interval);
            }
            Err(error) if io_kind(&error) == Some(ErrorKind::PermissionDenied) => {
                return Err(error).context("cannot ask for statistics");
            }
            Err(error) => {
                server = None;
                if !waiting {
                    say(&why_none(&error));
                }
                waiting = true;
                thread::sleep(RETRY);
            }
        }
    }
}

/// Returns what has been counted since the last time, from `server`, or from the one that
/// is there now.
fn next_metrics(server: &mut Option<StatsClient>) -> Result<Metrics> {
    let connected = match server.take() {
        Some(server) => server,
        None => StatsClient::new().connect(None)?,
    };
    server.insert(connected).request("stats", Vec::new())
}

fn why_none(error: &anyhow::Error) -> String {
    match io_kind(error) {
        // Nothing is there, or what a scheduler has left that was killed.
        Some(ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
            "no scx_sfs is running, waiting for one".into()
        }
        _ => format!("no scx_sfs answers ({error:#}), waiting for one"),
    }
}

fn io_kind(error: &anyhow::Error) -> Option<ErrorKind> {
    error.downcast_ref().map(std::io::Error::kind)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    io_kind(error) == Some(ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::poll::{poll, PollFd, PollFlags, PollTimeout};

    /// Far more than a request takes, on any machine.
    const LIMIT: Duration = Duration::from_secs(60);

    fn is_asked(desk: &Desk, timeout: Duration) -> bool {
        let mut fds = [PollFd::new(desk.asker.wake.as_fd(), PollFlags::POLLIN)];
        poll(&mut fds, PollTimeout::try_from(timeout).unwrap()).unwrap() > 0
    }

    fn functions(_: Request) -> Answer {
        Answer::Functions(Vec::new())
    }

    #[test]
    fn every_reader_is_answered_however_they_ask() {
        const READERS: usize = 4;
        const EACH: usize = 500;
        let desk = Desk::new().unwrap();
        assert!(!is_asked(&desk, Duration::ZERO));
        let readers: Vec<_> = (0..READERS)
            .map(|reader| {
                let asker = desk.asker.clone();
                thread::spawn(move || {
                    for i in 0..EACH {
                        let answer = asker.ask(Request::Functions { most: 1 }).unwrap();
                        assert!(matches!(answer, Answer::Functions(_)));
                        if i % (reader + 2) == 0 {
                            thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        while readers.iter().any(|reader| !reader.is_finished()) {
            if is_asked(&desk, Duration::from_millis(10)) {
                desk.answer(functions);
            }
        }
        readers
            .into_iter()
            .for_each(|reader| reader.join().unwrap());
        assert!(desk.asked.try_recv().is_err());
    }

    #[test]
    fn a_reader_is_told_that_nobody_answers_any_more() {
        let desk = Desk::new().unwrap();
        let asker = desk.asker.clone();
        let waiting = thread::spawn(move || {
            let first = asker.ask(Request::Metrics).is_err();
            (first, asker.ask(Request::Metrics).is_err())
        });
        assert!(is_asked(&desk, LIMIT));
        drop(desk);
        assert_eq!(waiting.join().unwrap(), (true, true));
    }

    /// A counter that could not be read is no reason for an enormous one, or for none.
    #[test]
    fn counters_that_go_back_have_not_grown() {
        let before = Metrics {
            arrivals: 7,
            hints: 5,
            filter_starts: 3,
            queue_delay_mean_us: 10.0,
            overloads: 1,
            ..Metrics::default()
        };
        let nothing = Metrics::default().since(&before);
        assert_eq!((nothing.arrivals, nothing.hints), (0, 0));
        assert_eq!((nothing.filter_starts, nothing.overloads), (0, 0));
        assert!(nothing.queue_delay_mean_us.abs() < 1e-9);
        let later = Metrics {
            arrivals: 9,
            ..before.clone()
        };
        assert_eq!(later.since(&before).arrivals, 2);
    }

    fn request(req: &str, args: &[(&str, &str)]) -> StatsRequest {
        let own = |(key, value): &(&str, &str)| (key.to_string(), value.to_string());
        StatsRequest::new(req, args.iter().map(own).collect())
    }

    #[test]
    fn requests_that_there_are_not_are_refused() {
        let desk = Desk::new().unwrap();
        let asker = desk.asker.clone();
        let mut reader = reader(move |what| asker.ask(what));
        for (wrong, word) in [
            (
                request("stats", &[("target", "bottom")]),
                "top or functions",
            ),
            (request("bye\n", &[]), "\"bye\\n\""),
            (
                request("stats", &[("target", "functions"), ("count", "all")]),
                "count",
            ),
        ] {
            let said = format!("{:#}", reader(&wrong).unwrap_err());
            assert!(said.contains(word), "{said}");
        }
        let meta = reader(&request("stats_meta", &[])).unwrap();
        assert!(meta["Metrics"]["fields"]["arrivals"].is_object(), "{meta}");
        assert!(desk.asked.try_recv().is_err());
    }

    #[test]
    fn a_list_of_functions_has_a_bound() {
        let most = |count: &str| most_functions(Some(&count.to_owned())).unwrap();
        assert_eq!((most("0"), most("7")), (0, 7));
        assert_eq!(most("1000000"), MAX_FUNCTIONS);
        assert_eq!(most_functions(None).unwrap(), MAX_FUNCTIONS);
    }
}
