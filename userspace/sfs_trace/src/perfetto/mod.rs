//! Traces in Perfetto's format: a track for each CPU, and one for each invocation below that of its
//! function.

pub mod packet;

use std::collections::{HashMap, HashSet};
use std::io::Write;

use anyhow::{Context, Result};
use sfs_text::word;

use crate::account::{Account, Output, Run};
use crate::follow::{Followed, Sink};
use crate::invocation::Invocation;
use crate::kind::Kind;
use crate::names::Names;
use crate::roster::Class;
use packet::{Detail, Packets, Track};

/// Ids of tracks: the CPUs together, the first CPU, the first function, the first invocation.
const CPUS: u64 = 1;
const CPU: u64 = 0x1_0000;
const FUNCTION: u64 = 0x1_0000_0000;
const INVOCATION: u64 = 0x1_0000_0000_0000;

/// What was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// Invocations.
    pub invocations: u64,
    /// Stays on CPUs, without idle ones.
    pub runs: u64,
}

/// Writes a trace.
pub struct Tracer<W: Write> {
    packets: Packets<W>,
    described: HashSet<u64>,
    /// Names of runners, as they were when they ran first.
    runners: HashMap<u32, String>,
    written: Written,
}

impl<W: Write> Tracer<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self {
            packets: Packets::new(out),
            described: HashSet::new(),
            runners: HashMap::new(),
            written: Written::default(),
        }
    }

    /// Ends the trace. Returns what was written.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn finish(self, followed: &Followed) -> Result<Written> {
        let mut this = self;
        if followed.lost > 0 {
            let name = format!("{} scheduling events lost", followed.lost);
            this.packets.instant(followed.to, CPUS, &name, "losses")?;
        }
        this.packets.flush()?;
        Ok(this.written)
    }

    /// Describes a track unless that was done.
    fn describe(&mut self, track: &Track<'_>) -> Result<()> {
        if self.described.insert(track.uuid) {
            self.packets.track(track)?;
        }
        Ok(())
    }

    fn run(&mut self, run: &Run, account: &Account, names: &Names) -> Result<()> {
        let roster = account.roster();
        let class = roster.who(run.who).class;
        let track = CPU + run.cpu as u64;
        if !self.described.contains(&track) {
            self.describe(&Track {
                uuid: track,
                parent: CPUS,
                name: &format!("CPU {}", run.cpu),
                rank: i32::try_from(run.cpu).unwrap_or(i32::MAX),
            })?;
        }
        if class == Class::Idle {
            return Ok(());
        }
        self.written.runs += 1;
        let runner = self.runners.entry(run.who);
        let name = runner.or_insert_with(|| names.runner(roster, run.who));
        let mut details = vec![
            Detail::Text("turn", run.turn.name()),
            Detail::Text("class", class.name()),
            Detail::Number("thread", run.pid.into()),
        ];
        if run.serial != 0 {
            details.push(Detail::Number("invocation", run.serial.cast_signed()));
        }
        let packets = &mut self.packets;
        packets.begin(run.from, track, name, run.turn.name(), &details)?;
        packets.end(run.to, track)?;
        Ok(())
    }

    fn invocation(
        &mut self,
        invocation: &Invocation,
        account: &Account,
        names: &Names,
    ) -> Result<()> {
        if !names.is_wanted(invocation.cgroup) || invocation.seen() == 0 {
            return Ok(());
        }
        self.written.invocations += 1;
        let function = names.runner(account.roster(), invocation.who);
        let parent = FUNCTION + u64::from(invocation.who);
        self.describe(&Track {
            uuid: parent,
            parent: 0,
            name: &function,
            rank: 1,
        })?;
        let uuid = INVOCATION + invocation.serial;
        // Tracks of invocations are not described twice: their numbers are their own.
        self.packets.track(&Track {
            uuid,
            parent,
            name: &format!("process {} #{}", invocation.pid, invocation.seq),
            rank: i32::try_from(invocation.serial).unwrap_or(i32::MAX),
        })?;
        let cgroup = names.path(invocation.cgroup).map(word).unwrap_or_default();
        let details = [
            Detail::Number("invocation", invocation.serial.cast_signed()),
            Detail::Number("process", invocation.pid.into()),
            Detail::Text("cgroup", &cgroup),
            Detail::Text("ended", if invocation.finished { "yes" } else { "no" }),
            Detail::Number(
                "before_watch_ns",
                invocation.time(Kind::Before).cast_signed(),
            ),
            Detail::Number("unrecorded_segments", invocation.unrecorded.cast_signed()),
        ];
        let begin = invocation.begin + invocation.time(Kind::Before);
        let packets = &mut self.packets;
        packets.begin(begin, uuid, &function, "invocation", &details)?;
        for segment in &invocation.segments {
            if segment.kind != Kind::Before {
                packets.begin(segment.from, uuid, segment.kind.name(), "segment", &[])?;
                packets.end(segment.to, uuid)?;
            }
        }
        packets.end(invocation.end, uuid)?;
        Ok(())
    }
}

impl<W: Write> Sink for Tracer<W> {
    fn begin(&mut self, _: u64) -> Result<()> {
        self.describe(&Track {
            uuid: CPUS,
            parent: 0,
            name: "CPUs",
            rank: 0,
        })
    }

    fn take(&mut self, output: Output, account: &Account, names: &Names) -> Result<()> {
        match output {
            Output::Run(run) => self.run(&run, account, names),
            Output::Ended(invocation) => self.invocation(&invocation, account, names),
        }
        .context("the trace cannot be written")
    }
}

#[cfg(test)]
mod tests;
