//! Fixed work: a phase that does a number of iterations, instead of using an
//! amount of CPU time. What a scheduler does to caches and to the speed of
//! work is then a part of the CPU time that the phase takes.

/// What an iteration is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Body {
    /// A load whose address the load before it has found: bound by the latency
    /// of the memory.
    Chase,
    /// The sum of one cache line, in the order of addresses: bound by its
    /// bandwidth.
    Sum,
    /// A branch that depends on a pseudo-random word.
    Branch,
}

/// The memory that the iterations go over again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Set {
    /// 32 KiB: a first-level cache.
    Small,
    /// 1 MiB: a second-level cache.
    Middle,
    /// 8 MiB: a share of a last-level cache.
    Large,
}

impl Set {
    /// Its size in bytes.
    pub fn bytes(self) -> usize {
        match self {
            Self::Small => 32 << 10,
            Self::Middle => 1 << 20,
            Self::Large => 8 << 20,
        }
    }
}

/// A kind of fixed work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Kernel {
    /// What an iteration is.
    pub body: Body,
    /// What the iterations go over.
    pub set: Set,
}

const fn kernel(body: Body, set: Set) -> Kernel {
    Kernel { body, set }
}

impl Kernel {
    /// Number of kinds.
    pub const COUNT: usize = 9;

    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; Self::COUNT] = [
        kernel(Body::Chase, Set::Small),
        kernel(Body::Chase, Set::Middle),
        kernel(Body::Chase, Set::Large),
        kernel(Body::Sum, Set::Small),
        kernel(Body::Sum, Set::Middle),
        kernel(Body::Sum, Set::Large),
        kernel(Body::Branch, Set::Small),
        kernel(Body::Branch, Set::Middle),
        kernel(Body::Branch, Set::Large),
    ];

    /// Its index in [`Kernel::ALL`].
    pub fn number(self) -> usize {
        self.body as usize * 3 + self.set as usize
    }

    /// Its name, in traces and on command lines.
    pub fn name(self) -> &'static str {
        match (self.body, self.set) {
            (Body::Chase, Set::Small) => "chase-32k",
            (Body::Chase, Set::Middle) => "chase-1m",
            (Body::Chase, Set::Large) => "chase-8m",
            (Body::Sum, Set::Small) => "sum-32k",
            (Body::Sum, Set::Middle) => "sum-1m",
            (Body::Sum, Set::Large) => "sum-8m",
            (Body::Branch, Set::Small) => "branch-32k",
            (Body::Branch, Set::Middle) => "branch-1m",
            (Body::Branch, Set::Large) => "branch-8m",
        }
    }

    /// A short description.
    pub fn about(self) -> &'static str {
        match (self.body, self.set) {
            (Body::Chase, Set::Small) => "Fixed work: a chase of pointers at random over 32 KiB",
            (Body::Chase, Set::Middle) => "Fixed work: the same over 1 MiB",
            (Body::Chase, Set::Large) => "Fixed work: the same over 8 MiB",
            (Body::Sum, Set::Small) => "Fixed work: a sum of 32 KiB, one address after the other",
            (Body::Sum, Set::Middle) => "Fixed work: the same over 1 MiB",
            (Body::Sum, Set::Large) => "Fixed work: the same over 8 MiB",
            (Body::Branch, Set::Small) => "Fixed work: branches on pseudo-random words of 32 KiB",
            (Body::Branch, Set::Middle) => "Fixed work: the same over 1 MiB",
            (Body::Branch, Set::Large) => "Fixed work: the same over 8 MiB",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_places_in_the_list_and_names_tell_the_size() {
        for (place, kernel) in Kernel::ALL.into_iter().enumerate() {
            assert_eq!(kernel.number(), place);
            let (_, size) = kernel.name().split_once('-').unwrap();
            let bytes = match size.strip_suffix('k') {
                Some(kib) => kib.parse::<usize>().unwrap() << 10,
                None => size.trim_end_matches('m').parse::<usize>().unwrap() << 20,
            };
            assert_eq!(kernel.set.bytes(), bytes, "{size}");
        }
    }
}
