//! Converters: traces from published workloads of others.

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
    /// Rows after a row with a later arrival, which were sorted in.
    pub out_of_order: usize,
}

impl Converted {
    /// Sorts by arrival and counts the rows out of order; rows that arrive together
    /// keep their order.
    fn sort(&mut self) {
        let mut latest = 0;
        for one in &self.invocations {
            self.out_of_order += usize::from(one.arrival_us < latest);
            latest = latest.max(one.arrival_us);
        }
        self.invocations.sort_by_key(|one| one.arrival_us);
    }
}

/// A file of the real workloads: in a folder beside the project or where
/// SCX_SFS_SHARED says. None if it is not there: [`NOT_HERE`].
#[cfg(test)]
fn shared(name: &str) -> Option<std::path::PathBuf> {
    let folder = std::env::var_os("SCX_SFS_SHARED").map(std::path::PathBuf::from);
    let beside = || std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let path = folder.unwrap_or_else(beside).join(name);
    path.exists().then_some(path)
}

/// Why a test that needs such a file is skipped.
#[cfg(test)]
const NOT_HERE: &str = "the traces of others are not here";
