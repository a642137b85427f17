//! The parts of the checks: each has a guest of its own.

use std::fmt;

use clap::ValueEnum;

/// Where the guest has the files that the host brings in.
pub const PLACE: &str = "/vm-run/sfs";

/// The name of this program in the guest, below [`PLACE`].
pub const PROGRAM: &str = "sfs_service";

/// Where the guest has the packages of the part `package`, below [`PLACE`], and their versions:
/// the second one is an upgrade of the first.
pub const PACKAGES: &str = "packages";
/// The versions of the package that are installed, the second as an upgrade.
pub const VERSIONS: [&str; 2] = ["0.0.1-1", "0.0.2-1"];

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
    /// The Debian package is installed, upgraded, removed and purged
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
