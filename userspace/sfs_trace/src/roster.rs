//! Who runs: functions and other programs, each with a number.

use std::collections::HashMap;

use crate::event::Comm;

/// Most kinds of runners that are told apart. Further ones share a number.
const MOST: usize = 65_536;

/// Set in the identity of a function that has a name, by a hint or the loader (`SFS_FUNCTION_NAMED`
/// of the kernel half).
pub const NAMED: u64 = 1 << 63;

/// Set in the identity of a function that is known by its program's name (`SFS_FUNCTION_COMM`),
/// unless it is [`NAMED`]: then the bit has no meaning.
pub const BY_PROGRAM: u64 = 1 << 62;

/// Returns whether a function with this identity is known by its program's name.
pub fn is_by_program(function: u64) -> bool {
    function & (NAMED | BY_PROGRAM) == BY_PROGRAM
}

/// A class of runners.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// An invocation.
    Function,
    /// A daemon, a login, or a function's task between invocations.
    Outside,
    /// A kernel thread.
    Kernel,
    /// A real-time or deadline task.
    RealTime,
    /// Nobody: the CPU idles.
    Idle,
}

impl Class {
    /// Returns its name in JSON and in traces.
    pub fn name(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::Outside => "outside",
            Self::Kernel => "kernel",
            Self::RealTime => "real_time",
            Self::Idle => "idle",
        }
    }
}

/// A runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Who {
    /// Its class.
    pub class: Class,
    /// Identity of its function, if scx_sfs knows it; else 0.
    pub function: u64,
    /// Id of its cgroup, or of its sandbox's.
    pub group: u64,
    /// Its program's name.
    pub comm: Comm,
}

impl Who {
    /// Nobody.
    pub const IDLE: Self = Self {
        class: Class::Idle,
        function: 0,
        group: 0,
        comm: [0; 16],
    };

    /// More runners than there is room for.
    const OTHERS: Self = Self {
        class: Class::Outside,
        function: 0,
        group: 0,
        comm: *b"(others)\0\0\0\0\0\0\0\0",
    };
}

/// All runners seen.
#[derive(Debug)]
pub struct Roster {
    numbers: HashMap<Who, u32>,
    known: Vec<Who>,
    /// For functions with an identity: one of their sandboxes, and whether there are others.
    sandboxes: HashMap<u64, (u64, bool)>,
}

impl Default for Roster {
    fn default() -> Self {
        Self {
            numbers: HashMap::from([(Who::OTHERS, 0)]),
            known: vec![Who::OTHERS],
            sandboxes: HashMap::new(),
        }
    }
}

impl Roster {
    /// Returns the number of `who`.
    pub fn number(&mut self, mut who: Who) -> u32 {
        if who.function != 0 && who.class == Class::Function {
            self.note_sandbox(who.function, who.group);
            // A function is one runner, whatever its programs and its sandboxes are.
            if !is_by_program(who.function) {
                who.comm = [0; 16];
            }
            who.group = 0;
        }
        if let Some(number) = self.numbers.get(&who) {
            return *number;
        }
        if self.known.len() >= MOST {
            return 0;
        }
        let number = self.known.len() as u32;
        self.known.push(who);
        self.numbers.insert(who, number);
        number
    }

    fn note_sandbox(&mut self, function: u64, sandbox: u64) {
        if sandbox == 0 || (self.sandboxes.len() >= MOST && !self.sandboxes.contains_key(&function))
        {
            return;
        }
        let noted = self.sandboxes.entry(function).or_insert((sandbox, false));
        noted.1 |= noted.0 != sandbox;
    }

    /// Returns the runner with this number.
    pub fn who(&self, number: u32) -> Who {
        *self.known.get(number as usize).unwrap_or(&Who::OTHERS)
    }

    /// Returns the id of one of the function's sandboxes, and whether it has others.
    pub fn sandbox_of(&self, function: u64) -> Option<(u64, bool)> {
        self.sandboxes.get(&function).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(function: u64, group: u64, comm: u8) -> Who {
        Who {
            class: Class::Function,
            function,
            group,
            comm: [comm; 16],
        }
    }

    #[test]
    fn a_function_is_one_runner_in_all_its_sandboxes() {
        let mut roster = Roster::default();
        let first = roster.number(who(7, 100, 1));
        assert_eq!(roster.sandbox_of(7), Some((100, false)));
        assert_eq!(roster.number(who(7, 101, 2)), first);
        assert_eq!(roster.sandbox_of(7), Some((100, true)));
        assert_ne!(roster.number(who(8, 100, 1)), first);
        assert_ne!(roster.number(who(0, 100, 1)), roster.number(who(0, 100, 2)));
        assert_eq!(roster.who(first).function, 7);
    }

    #[test]
    fn there_is_a_limit() {
        let mut roster = Roster::default();
        for function in 1..=2 * MOST as u64 {
            roster.number(who(function, function, 1));
        }
        assert_eq!(roster.known.len(), MOST);
        assert_eq!(roster.sandboxes.len(), MOST);
        assert_eq!(roster.number(who(3 * MOST as u64, 1, 1)), 0);
    }
}
