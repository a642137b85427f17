//! Explains the slowest invocations: where their time went, and who ran instead.

pub mod instead;
mod text;

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;
use sfs_text::word;

use crate::account::{Account, Output};
use crate::follow::{Followed, Sink};
use crate::invocation::Invocation;
use crate::kind::{Kind, Queue};
use crate::names::Names;
use instead::{History, Instead, Stretch};

/// A slow invocation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Slow {
    /// Its function.
    pub function: String,
    /// A process that served it.
    pub pid: i32,
    /// The path of that process's cgroup; None: unknown.
    pub cgroup: Option<String>,
    /// Its arrival, in ms after the start of the watch; negative: before.
    pub arrived_ms: f64,
    /// Its time since its arrival, or since the start of the watch if that is later, in ms. `parts`
    /// adds up to it.
    pub took_ms: f64,
    /// Whether it has ended.
    pub finished: bool,
    /// Its time before the watch, of which nothing is known, in ms.
    pub before_ms: f64,
    /// What it did, in ms, by [`Kind::name`].
    pub parts: BTreeMap<&'static str, f64>,
    /// Number of CPUs that it may use.
    pub cpus: usize,
    /// Who used these while it waited in queues.
    pub ran_instead: Vec<Instead>,
    /// Who used these while real-time work displaced it.
    pub displaced_by: Vec<Instead>,
    /// The cgroup that was out of quota.
    pub parked_by: Option<String>,
    /// Changes for which there was no room; `ran_instead` lacks what came after.
    pub unrecorded: u64,
    /// The same in sentences.
    pub sentences: Vec<String>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The scheduler.
    pub scheduler: String,
    /// Length of the watch in ms.
    pub watched_ms: f64,
    /// The limit in ms.
    pub slower_than_ms: f64,
    /// Invocations that have ended.
    pub ended: u64,
    /// Of these, those that took as long as the limit.
    pub slower: u64,
    /// Invocations that have taken as long as the limit, and have not ended.
    pub slower_in_progress: u64,
    /// Scheduling events lost: if there are any, figures have errors.
    pub lost_events: u64,
    /// What was not seen.
    pub missing: Vec<&'static str>,
    /// The slowest, slowest first.
    pub slowest: Vec<Slow>,
}

/// Keeps the slowest invocations.
pub struct Explainer {
    slower_than: u64,
    most: usize,
    from: Option<u64>,
    history: History,
    ended: u64,
    slower: u64,
    in_progress: u64,
    slowest: Vec<(u64, Slow)>,
}

impl Explainer {
    /// Keeps the `most` slowest of those that take `slower_than` ns or longer.
    pub fn new(slower_than: u64, most: usize) -> Self {
        Self {
            slower_than,
            most,
            from: None,
            history: History::default(),
            ended: 0,
            slower: 0,
            in_progress: 0,
            slowest: Vec::new(),
        }
    }

    fn invocation(&mut self, invocation: &Invocation, account: &Account, names: &Names) {
        if !names.is_wanted(invocation.cgroup) {
            return;
        }
        let took = invocation.seen();
        let is_slow = took >= self.slower_than;
        if invocation.finished {
            self.ended += 1;
            self.slower += u64::from(is_slow);
        } else {
            self.in_progress += u64::from(is_slow);
        }
        let position = self.slowest.partition_point(|(other, _)| *other >= took);
        if !is_slow || position >= self.most {
            return;
        }
        let slow = self.explain(invocation, account, names);
        self.slowest.insert(position, (took, slow));
        self.slowest.truncate(self.most);
    }

    fn explain(&self, invocation: &Invocation, account: &Account, names: &Names) -> Slow {
        let ms = |ns: u64| ns as f64 / 1e6;
        let all = crate::cpus::Cpus::first(account.nr_cpus());
        let allowed = invocation.cpus.as_deref().map_or(all, |own| own.and(&all));
        let instead = |is_it: &dyn Fn(Kind) -> bool| {
            let waits: Vec<Stretch> = (invocation.segments.iter())
                .filter(|segment| is_it(segment.kind))
                .map(|segment| (segment.from, segment.to))
                .collect();
            let (serial, roster) = (invocation.serial, account.roster());
            self.history
                .instead(&waits, &allowed, serial, account.running(), roster, names)
        };
        let parts = Kind::ALL.iter().filter(|kind| **kind != Kind::Before);
        let parts = parts
            .map(|kind| (kind.name(), ms(invocation.time(*kind))))
            .filter(|(_, time)| *time > 0.0);
        let path = |id| names.path(id).map(word);
        let from = self.from.unwrap_or_default();
        let mut slow = Slow {
            function: names.runner(account.roster(), invocation.who),
            pid: invocation.pid,
            cgroup: path(invocation.cgroup),
            arrived_ms: (invocation.begin as f64 - from as f64) / 1e6,
            took_ms: ms(invocation.seen()),
            finished: invocation.finished,
            before_ms: ms(invocation.time(Kind::Before)),
            parts: parts.collect(),
            cpus: allowed.count(),
            ran_instead: instead(&|kind| matches!(kind, Kind::Queued(_))),
            displaced_by: instead(&|kind| kind == Kind::Displaced),
            parked_by: (invocation.parked_by != 0)
                .then(|| path(invocation.parked_by).unwrap_or_else(|| "its cgroup".into())),
            unrecorded: invocation.unrecorded,
            sentences: Vec::new(),
        };
        slow.sentences = text::sentences(&slow);
        slow
    }

    /// Returns what was found.
    pub fn report(self, followed: &Followed) -> Report {
        Report {
            scheduler: followed.loaded.name().into(),
            watched_ms: (followed.to - followed.from) as f64 / 1e6,
            slower_than_ms: self.slower_than as f64 / 1e6,
            ended: self.ended,
            slower: self.slower,
            slower_in_progress: self.in_progress,
            lost_events: followed.lost,
            missing: followed.missing.clone(),
            slowest: self.slowest.into_iter().map(|(_, slow)| slow).collect(),
        }
    }
}

impl Sink for Explainer {
    fn begin(&mut self, from: u64) -> Result<()> {
        self.from = Some(from);
        Ok(())
    }

    fn take(&mut self, output: Output, account: &Account, names: &Names) -> Result<()> {
        match output {
            Output::Run(run) => self.history.add(&run),
            Output::Ended(invocation) => self.invocation(&invocation, account, names),
        }
        Ok(())
    }
}

/// Returns the words for a wait in this queue, after "waited 5 ms".
fn in_words(queue: Queue) -> &'static str {
    match queue {
        Queue::Filter => "in FILTER",
        Queue::Ranked => "by rank",
        Queue::Fair => "in FAIR",
        Queue::Outside => "among work outside of functions",
        Queue::System => "for a system turn",
        Queue::Prompt => "for a prompt turn",
        Queue::Local => "for the CPU chosen for it",
        Queue::Other => "for a CPU",
    }
}

pub use text::text;

#[cfg(test)]
mod tests;
