//! The parts of the checks: each has a guest of its own.

use std::fmt;

use clap::ValueEnum;

/// Where the guest has the files that the host brings in.
pub const PLACE: &str = "/vm-run/sfs";

/// The name of this program in the guest, below [`PLACE`].
pub const PROGRAM: &str = "sfs_service";

/// Where the guest has the packages of the part `package`, below [`PLACE`].
pub const PACKAGES: &str = "packages";
/// Their versions: each is an upgrade of the one before.
pub const VERSIONS: [&str; 3] = ["0.0.1-1", "0.0.2-1", "0.0.3-1"];

/// The guest's folder that comes back to the host.
pub const OUT: &str = "/out";
/// The host's folder for it, in the repository.
pub const OUT_OF_HOST: &str = "out/package";
/// What was typed, and the answers: a file there.
pub const TRANSCRIPT: &str = "transcript.txt";
/// Two looks at the metrics, with work in between: files there.
pub const METRICS: [&str; 2] = ["metrics-1.txt", "metrics-2.txt"];

/// A group of checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// What an operator does, and what happens to a loader
    Quick,
    /// A CPU goes and comes back; on two CPUs
    Hotplug,
    /// A real-time task keeps the CPU for 34 s, twice, and the kernel ejects the scheduler: many
    /// minutes of the host's time
    Stall,
    /// The Debian package is installed, used, upgraded, removed and purged, on Debian 13: the
    /// transcript is out/package/transcript.txt
    Package,
}

impl Part {
    /// All parts, in the order in which they run.
    pub const ALL: [Self; 4] = [Self::Quick, Self::Package, Self::Hotplug, Self::Stall];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Hotplug => "hotplug",
            Self::Stall => "stall",
            Self::Package => "package",
        }
    }

    /// The number of CPUs of its guest.
    pub fn cpus(self) -> u32 {
        match self {
            Self::Hotplug => 2,
            Self::Quick | Self::Stall | Self::Package => 1,
        }
    }
}

impl Part {
    /// Its machine: a root file system with no more than systemd needs, or one that is like a
    /// fresh installation.
    pub fn machine(self) -> Machine {
        match self {
            Self::Package => Machine::Fresh,
            Self::Quick | Self::Hotplug | Self::Stall => Machine::Small,
        }
    }
}

/// What a guest's root file system has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Machine {
    /// What systemd needs: it boots quickly.
    Small,
    /// What a fresh installation has, apt and dpkg's records among it.
    Fresh,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_command_line() {
        for part in Part::ALL {
            assert_eq!(Part::from_str(part.name(), false), Ok(part));
        }
        assert_eq!(Part::ALL.len(), Part::value_variants().len());
    }
}
