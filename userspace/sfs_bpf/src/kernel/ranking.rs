//! Ranks: passes what was learned about functions to the kernel half.

use anyhow::{Context, Result};
use libbpf_rs::{ErrorKind, MapCore, MapFlags};
use sfs_policy::learn::Table;
use zerocopy::IntoBytes;

use super::shared::Word;
use super::{ignore, KernelHalf};
use crate::bpf_intf::{sfs_rank_table, SFS_NO_TABLE};

/// The receiver of the ranks: the kernel half.
pub trait Ranking {
    /// Sets rank table `id`.
    ///
    /// # Errors
    ///
    /// It is rejected.
    fn set_rank_table(&mut self, id: u16, table: &Table) -> Result<()>;

    /// Makes functions without a table of their own use table `id`.
    fn set_default_table(&mut self, id: u16);

    /// Makes `function` use table `id`.
    ///
    /// # Errors
    ///
    /// There are too many functions.
    fn set_function_table(&mut self, function: u64, id: u16) -> Result<()>;

    /// Makes `function` use the default table.
    ///
    /// # Errors
    ///
    /// It is rejected.
    fn forget_function(&mut self, function: u64) -> Result<()>;

    /// Sets the number of unread completions, 1 or more, that wakes the loader up.
    fn set_completion_batch(&mut self, completions: u32);

    /// Stops ranking: functions are scheduled as with `--policy sfs`. This cannot fail.
    fn rank_no_more(&mut self);
}

impl Ranking for KernelHalf<'_> {
    fn set_rank_table(&mut self, id: u16, table: &Table) -> Result<()> {
        let value = sfs_rank_table {
            rank: table.rank,
            worse: table.worse,
            burst: table.burst,
            pad: [0; 11],
        };
        let map = &self.skel.maps.rank_tables;
        map.update(
            &u32::from(id).to_ne_bytes(),
            value.as_bytes(),
            MapFlags::ANY,
        )
        .context("cannot hand a rank table to the kernel half")
    }

    fn set_default_table(&mut self, id: u16) {
        if let Some(data) = self.skel.maps.data_data.as_mut() {
            Word::store(&mut data.default_table, id.into());
        }
    }

    fn set_function_table(&mut self, function: u64, id: u16) -> Result<()> {
        let (key, value) = (function.to_ne_bytes(), u32::from(id).to_ne_bytes());
        let map = &self.skel.maps.function_tables;
        map.update(&key, &value, MapFlags::ANY)
            .context("cannot tell the kernel half of another function")
    }

    fn forget_function(&mut self, function: u64) -> Result<()> {
        let map = &self.skel.maps.function_tables;
        map.delete(&function.to_ne_bytes())
            .or_else(|error| ignore(error, ErrorKind::NotFound))
            .context("cannot have the kernel half forget a function")
    }

    fn set_completion_batch(&mut self, completions: u32) {
        if let Some(data) = self.skel.maps.data_data.as_mut() {
            Word::store(&mut data.completion_batch, completions);
        }
    }

    /// Writes a word in shared memory. Tasks already queued by rank are served first; tasks
    /// queued from now on go to FILTER or FAIR (rank.bpf.h).
    fn rank_no_more(&mut self) {
        if let Some(data) = self.skel.maps.data_data.as_mut() {
            Word::store(&mut data.default_table, SFS_NO_TABLE);
        }
    }
}
