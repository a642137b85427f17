//! What an invocation does at a time: where it waits, in which kind of turn it runs, or what holds
//! it up.

/// The kind of a task's turn (`enum turn` of the kernel half).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Turn {
    /// In FAIR.
    Fair,
    /// In FILTER, on credit.
    Filter,
    /// By rank.
    Ranked,
    /// Of a kernel thread or the loader.
    System,
    /// Of a daemon that has woken up.
    Prompt,
    /// Of another scheduler, or unknown.
    Other,
    /// Of a real-time or deadline task.
    RealTime,
}

impl Turn {
    /// Returns the turn with this number in the kernel half.
    pub fn of_number(number: u16) -> Self {
        match number {
            0 => Self::Fair,
            1 => Self::Filter,
            2 => Self::Ranked,
            3 => Self::System,
            4 => Self::Prompt,
            _ => Self::Other,
        }
    }

    /// Returns its name in texts and in traces.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fair => "FAIR",
            Self::Filter => "FILTER",
            Self::Ranked => "ranked",
            Self::System => "system",
            Self::Prompt => "prompt",
            Self::Other => "other",
            Self::RealTime => "real-time",
        }
    }
}

/// The kind of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Queue {
    /// FILTER, in order of arrival.
    Filter,
    /// In order of ranks.
    Ranked,
    /// FAIR.
    Fair,
    /// Work that is no function.
    Outside,
    /// System turns.
    System,
    /// Prompt turns.
    Prompt,
    /// Of one CPU, which has been chosen already.
    Local,
    /// Of another scheduler, or unknown.
    Other,
}

/// A place in which a task waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A queue.
    Queue(Queue),
    /// Parked by the cgroup with this id, which is out of quota.
    Parked(u64),
}

/// Of a dispatch queue's id: the kernel's own.
const BUILT_IN: u64 = 1 << 63;
/// The first parked queue (`DSQ_PARKED` of `quota.bpf.h`); the rest of the id is the cgroup's.
pub const PARKED: u64 = 0x1000_0000_0000_0000;
/// A shared queue's number, from 1, is in these bits of its id (`state.bpf.h`).
pub const SHARED_SHIFT: u32 = 16;
/// The same for the queues of single CPUs.
pub const CPU_SHIFT: u32 = 32;

impl Place {
    /// Returns the place with this id of a dispatch queue of scx_sfs. None if it is of no kind that
    /// is known, or 0.
    pub fn of_queue(id: u64) -> Option<Self> {
        if id & BUILT_IN != 0 {
            return Some(Self::Queue(Queue::Local));
        }
        if id & PARKED != 0 {
            return Some(Self::Parked(id & !PARKED));
        }
        let number = match id >> CPU_SHIFT {
            0 => id >> SHARED_SHIFT,
            number => number,
        };
        Some(Self::Queue(match number {
            1 => Queue::Filter,
            2 => Queue::Fair,
            3 => Queue::Ranked,
            4 => Queue::System,
            5 => Queue::Prompt,
            6 => Queue::Outside,
            _ => return None,
        }))
    }

    /// Returns the place in which a task waits for this turn.
    pub fn of_turn(turn: Turn) -> Self {
        Self::Queue(match turn {
            Turn::Fair => Queue::Fair,
            Turn::Filter => Queue::Filter,
            Turn::Ranked => Queue::Ranked,
            Turn::System => Queue::System,
            Turn::Prompt => Queue::Prompt,
            Turn::Other | Turn::RealTime => Queue::Other,
        })
    }
}

/// What an invocation, or a task, does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Runs.
    Running(Turn),
    /// Waits for a CPU.
    Queued(Queue),
    /// Waits for a CPU that real-time work has taken from it, or for which it has all CPUs.
    Displaced,
    /// Parked: a cgroup is out of quota.
    Parked,
    /// Sleeps until a disk, or the like, is done.
    BlockedIo,
    /// Sleeps for another reason.
    Blocked,
    /// Nothing was seen of it yet, or its task has exited and others were not seen.
    Unseen,
    /// Before the watch began.
    Before,
}

/// Number of kinds.
pub const KINDS: usize = 21;

impl Kind {
    /// All kinds. Where several tasks share an invocation, the first kind that one of them has is
    /// the invocation's.
    pub const ALL: [Self; KINDS] = [
        Self::Running(Turn::Filter),
        Self::Running(Turn::Ranked),
        Self::Running(Turn::Fair),
        Self::Running(Turn::System),
        Self::Running(Turn::Prompt),
        Self::Running(Turn::Other),
        Self::Running(Turn::RealTime),
        Self::Queued(Queue::Local),
        Self::Queued(Queue::System),
        Self::Queued(Queue::Prompt),
        Self::Queued(Queue::Filter),
        Self::Queued(Queue::Ranked),
        Self::Queued(Queue::Fair),
        Self::Queued(Queue::Outside),
        Self::Queued(Queue::Other),
        Self::Displaced,
        Self::Parked,
        Self::BlockedIo,
        Self::Blocked,
        Self::Unseen,
        Self::Before,
    ];

    /// Returns its position in [`Kind::ALL`].
    pub fn index(self) -> usize {
        Self::ALL
            .iter()
            .position(|kind| *kind == self)
            .unwrap_or(KINDS - 2)
    }

    /// Returns its name in JSON and in traces.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running(Turn::Filter) => "running_filter",
            Self::Running(Turn::Ranked) => "running_ranked",
            Self::Running(Turn::Fair) => "running_fair",
            Self::Running(Turn::System) => "running_system",
            Self::Running(Turn::Prompt) => "running_prompt",
            Self::Running(Turn::Other) => "running",
            Self::Running(Turn::RealTime) => "running_real_time",
            Self::Queued(Queue::Local) => "queued_local",
            Self::Queued(Queue::System) => "queued_system",
            Self::Queued(Queue::Prompt) => "queued_prompt",
            Self::Queued(Queue::Filter) => "queued_filter",
            Self::Queued(Queue::Ranked) => "queued_ranked",
            Self::Queued(Queue::Fair) => "queued_fair",
            Self::Queued(Queue::Outside) => "queued_outside",
            Self::Queued(Queue::Other) => "queued",
            Self::Displaced => "displaced",
            Self::Parked => "parked",
            Self::BlockedIo => "blocked_io",
            Self::Blocked => "blocked",
            Self::Unseen => "unseen",
            Self::Before => "before_watch",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_place_and_a_name_of_its_own() {
        for (index, kind) in Kind::ALL.iter().enumerate() {
            assert_eq!(kind.index(), index);
        }
        let mut names: Vec<_> = Kind::ALL.iter().map(|kind| kind.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), KINDS);
    }

    #[test]
    fn queues_are_known_by_their_ids() {
        let place = Place::of_queue;
        assert_eq!(place(0x1_0003), Some(Place::Queue(Queue::Filter)));
        assert_eq!(place(0x3_0000), Some(Place::Queue(Queue::Ranked)));
        assert_eq!(place(0x2_0000_0007), Some(Place::Queue(Queue::Fair)));
        assert_eq!(place(PARKED | 77), Some(Place::Parked(77)));
        assert_eq!(place(BUILT_IN | 2), Some(Place::Queue(Queue::Local)));
        assert_eq!(place(0), None);
        assert_eq!(place(0x7_0000), None);
    }
}
