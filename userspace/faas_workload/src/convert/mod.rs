//! Converters of published workloads to traces.

pub mod azure;
pub mod fc;
pub mod sfs;

use faas_data::trace::Invocation;

/// Unusable lines: number, from 1, and reason.
pub type Skipped = Vec<(usize, String)>;

/// The result of a conversion.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Converted {
    /// The invocations, sorted by arrival.
    pub invocations: Vec<Invocation>,
    /// The unusable lines.
    pub skipped: Skipped,
    /// Number of rows that followed a row with a later arrival.
    pub out_of_order: usize,
}

impl Converted {
    /// Sorts by arrival, keeping the order of equal arrivals, and counts the
    /// rows out of order.
    fn sort(&mut self) {
        let mut latest = 0;
        for one in &self.invocations {
            self.out_of_order += usize::from(one.arrival_us < latest);
            latest = latest.max(one.arrival_us);
        }
        self.invocations.sort_by_key(|one| one.arrival_us);
    }
}

/// A file of the published workloads, in a folder beside the project or in
/// SCX_SFS_SHARED. None if it does not exist: [`NOT_HERE`].
#[cfg(test)]
fn shared(name: &str) -> Option<std::path::PathBuf> {
    let folder = std::env::var_os("SCX_SFS_SHARED").map(std::path::PathBuf::from);
    let beside = || std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let path = folder.unwrap_or_else(beside).join(name);
    path.exists().then_some(path)
}

/// Why tests that need such a file are skipped.
#[cfg(test)]
const NOT_HERE: &str = "the traces of others are not here";
