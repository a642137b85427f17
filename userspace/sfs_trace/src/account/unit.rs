//! A unit: what its tasks do together, and the invocation that it serves.

use std::collections::VecDeque;

use crate::event::Work;
use crate::invocation::{Invocation, Segment};
use crate::kind::{Kind, KINDS};

/// Segments kept from between two invocations. The next one may have arrived during them: a
/// server's request arrives when it wakes up, and is known when `accept()` returns.
const GAP: usize = 64;

/// A unit.
#[derive(Debug)]
pub struct Unit {
    /// Number of its tasks by what they do.
    counts: [u32; KINDS],
    /// What it does since `since`.
    kind: Kind,
    since: u64,
    /// The invocation in progress. Its segments reach up to `since`.
    pub live: Option<Box<Invocation>>,
    /// Segments since the last one, up to `since`.
    gap: VecDeque<Segment>,
    /// Whether its start was seen.
    pub born: bool,
    /// Number of the last invocation that was seen.
    pub last_seq: Option<u32>,
}

impl Unit {
    pub fn new(now: u64) -> Self {
        Self {
            counts: [0; KINDS],
            kind: Kind::Unseen,
            since: now,
            live: None,
            gap: VecDeque::new(),
            born: false,
            last_seq: None,
        }
    }

    /// Returns the number of its tasks.
    pub fn tasks(&self) -> u32 {
        self.counts.iter().sum()
    }

    /// Changes what one of its tasks does: from `old` to `new`, None: it is not there.
    pub fn change(&mut self, old: Option<Kind>, new: Option<Kind>, now: u64, room: &mut usize) {
        if let Some(old) = old {
            let count = &mut self.counts[old.index()];
            *count = count.saturating_sub(1);
        }
        if let Some(new) = new {
            self.counts[new.index()] += 1;
        }
        let first = self.counts.iter().position(|count| *count > 0);
        let kind = first.map_or(Kind::Unseen, |index| Kind::ALL[index]);
        if kind != self.kind {
            self.advance(now, room);
            self.kind = kind;
        }
    }

    /// Adds the time up to `now` to the invocation, or to the gap.
    fn advance(&mut self, now: u64, room: &mut usize) {
        let segment = Segment {
            kind: self.kind,
            from: self.since,
            to: now,
        };
        self.since = now;
        if let Some(live) = &mut self.live {
            live.add(segment, room);
        } else if segment.from < segment.to {
            if self.gap.len() == GAP {
                self.gap.pop_front();
            }
            self.gap.push_back(segment);
        }
    }

    /// The invocation `work`, whose record is `fresh`, has begun; no other one is in progress.
    /// `from` is the start of the watch.
    pub fn begin(
        &mut self,
        mut fresh: Invocation,
        work: &Work,
        from: u64,
        now: u64,
        room: &mut usize,
    ) {
        self.advance(now, room);
        let arrived = work.arrived_at.min(now);
        (fresh.begin, fresh.end) = (arrived, arrived);
        let gap = std::mem::take(&mut self.gap);
        let first_seen = gap.front().map_or(now, |segment| segment.from);
        let unseen = [
            (Kind::Before, from.min(first_seen)),
            (Kind::Unseen, first_seen),
        ];
        for (kind, to) in unseen {
            if fresh.end < to {
                let from = fresh.end;
                fresh.add(Segment { kind, from, to }, room);
            }
        }
        for segment in gap {
            if segment.to > fresh.end {
                let from = fresh.end;
                fresh.add(Segment { from, ..segment }, room);
            }
        }
        self.live = Some(Box::new(fresh));
    }

    /// The invocation in progress, if any, has ended at `at`. If that is before what the unit does
    /// now has begun, it is `now` instead.
    pub fn end(&mut self, at: u64, now: u64, room: &mut usize) -> Option<Box<Invocation>> {
        let at = if (self.since..=now).contains(&at) {
            at
        } else {
            now
        };
        self.advance(at, room);
        let mut ended = self.live.take()?;
        self.gap.clear();
        ended.finished = true;
        Some(ended)
    }

    /// The same at the end of the watch: it continues.
    pub fn cut(&mut self, now: u64, room: &mut usize) -> Option<Box<Invocation>> {
        let mut cut = self.end(now, now, room)?;
        cut.finished = false;
        Some(cut)
    }

    /// The invocation in progress arrived earlier than was known: a hint tells.
    pub fn arrived_earlier(&mut self, arrived_at: u64, from: u64, room: &mut usize) {
        let Some(live) = &mut self.live else {
            return;
        };
        if arrived_at == 0 || arrived_at >= live.begin {
            return;
        }
        let begin = live.begin;
        let old = std::mem::take(&mut live.segments);
        *room += old.len();
        let sums = live.sums;
        let end = live.end;
        live.sums = [0; KINDS];
        (live.begin, live.end) = (arrived_at, arrived_at);
        for (kind, to) in [(Kind::Before, from.min(begin)), (Kind::Unseen, begin)] {
            if live.end < to {
                let from = live.end;
                live.add(Segment { kind, from, to }, room);
            }
        }
        // What was there before has its sums, with or without its segments.
        for (new, old) in live.sums.iter_mut().zip(sums) {
            *new += old;
        }
        live.end = end;
        for segment in old {
            if *room == 0 {
                live.unrecorded += 1;
            } else {
                *room -= 1;
                live.segments.push(segment);
            }
        }
    }
}
