//! The end of the scheduler, and the kernel's report of it.

use std::panic::{catch_unwind, AssertUnwindSafe};

use anyhow::{bail, Context, Result};
use libbpf_rs::{MapCore, MapFlags};
use scx_utils::{compat, ScxExitKind, UserExitInfo};

use super::shared::Word;
use super::KernelHalf;
use crate::exit_text::{dump_lines, RawExit};

impl KernelHalf<'_> {
    /// Returns whether the kernel has ejected or unloaded the scheduler.
    pub fn exited(&mut self) -> bool {
        self.exit_kind() != 0
    }

    /// Returns the kernel's kind of exit (enum scx_exit_kind), 0 if it has not ended.
    pub fn exit_kind(&mut self) -> i32 {
        let data = self.skel.maps.data_data.as_mut();
        data.map_or(0, |data| Word::load(&mut data.uei.kind))
    }

    /// Unloads the scheduler and returns why it ended.
    ///
    /// # Errors
    ///
    /// It ended with an error; the kernel's dump goes to standard error.
    pub fn unload(&mut self) -> Result<UserExitInfo> {
        drop(self.link.take());
        self.watchers.clear();
        let info = self.exit_info()?;
        // It panics if standard error cannot be written. Then nothing can be
        // reported.
        match catch_unwind(AssertUnwindSafe(|| info.report())) {
            Ok(reported) => reported?,
            Err(_) if self.has_failed() => bail!("cannot report why the scheduler has ended"),
            Err(_) => {}
        }
        Ok(info)
    }

    /// Returns the kernel's report of the exit, and prints its dump, if any. (scx's `uei_read!`
    /// panics if a name in it is not UTF-8.)
    fn exit_info(&self) -> Result<UserExitInfo> {
        let data = self.skel.maps.data_data.as_ref();
        let uei = &data.context("the kernel half has no data")?.uei;
        let has = |field| compat::struct_has_field("scx_exit_info", field).unwrap_or(false);
        // The kernel half is unloaded and writes no more.
        let raw = RawExit {
            kind: uei.kind,
            code: has("exit_code").then_some(uei.exit_code),
            cpu: has("exit_cpu").then_some(uei.exit_cpu),
            reason: &uei.reason,
            message: &uei.msg,
        };
        let map = &self.skel.maps.data_uei_dump;
        let dump = map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY);
        let dump = dump.ok().flatten().unwrap_or_default();
        dump_lines(&dump)
            .iter()
            .for_each(|line| sfs_text::note(line));
        Ok(raw.into_info())
    }

    /// Returns whether it ended without a request.
    fn has_failed(&mut self) -> bool {
        let is_lost = self.skel.maps.data_data.is_none();
        is_lost || self.exit_kind() > ScxExitKind::UnregKern as i32
    }
}
