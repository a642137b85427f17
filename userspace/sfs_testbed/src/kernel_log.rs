//! What the kernel says while a case runs: a warning of the kernel fails the case. One that sched_ext
//! printed in most runs was in nobody's way for weeks, since no case looked.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

use anyhow::{Context, Result};

/// Parts of lines by which the kernel says that it, or a scheduler, has a defect.
const WARNINGS: [&str; 9] = [
    "WARNING: ",
    "BUG: ",
    "Oops: ",
    "general protection fault",
    "has zero slice",
    "rcu: INFO: ",
    "detected stall",
    "blocked for more than",
    "scheduling while atomic",
];
/// The longest record, in bytes (CONSOLE_EXT_LOG_MAX of the kernel's printk).
const RECORD_BYTES: usize = 8192;
/// So many warnings are shown of a case.
const SHOWN: usize = 5;

/// The kernel's log from now on.
#[derive(Debug)]
pub struct KernelLog(File);

impl KernelLog {
    /// Opens it behind its last record.
    ///
    /// # Errors
    ///
    /// There is no /dev/kmsg, or this process may not read it.
    pub fn open() -> Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_NONBLOCK);
        let file = options.open("/dev/kmsg").and_then(|mut file| {
            file.seek(SeekFrom::End(0))?;
            Ok(file)
        });
        file.map(Self).context("cannot read /dev/kmsg")
    }

    /// Describes the warnings since the last call, or since it was opened. `tests/run` fails the case
    /// for such notes.
    ///
    /// # Errors
    ///
    /// The log cannot be read.
    pub fn notes(&mut self) -> Result<Vec<String>> {
        let mut found = Vec::new();
        while let Some(record) = self.next()? {
            found.extend(warning(&record));
        }
        let more = found.len().saturating_sub(SHOWN);
        found.truncate(SHOWN);
        if more > 0 {
            found.push(format!("the kernel warned: {more} times more"));
        }
        Ok(found)
    }

    /// The next record; `None`: there is none yet.
    fn next(&mut self) -> Result<Option<String>> {
        let mut record = [0; RECORD_BYTES];
        loop {
            match self.0.read(&mut record) {
                Ok(0) => return Ok(None),
                Ok(bytes) => {
                    return Ok(Some(String::from_utf8_lossy(&record[..bytes]).into_owned()))
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                // The oldest ones were overwritten meanwhile: the next read goes on behind them.
                Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("cannot read /dev/kmsg"),
            }
        }
    }
}

/// The note for a record of /dev/kmsg, "PRIORITY,NUMBER,TIME,FLAGS;TEXT", if it is a warning of the
/// kernel. What programs write into the log (their facility, above bit 3, is not 0) is none.
fn warning(record: &str) -> Option<String> {
    let (head, text) = record.split_once(';')?;
    let priority: u32 = head.split(',').next()?.parse().ok()?;
    let line = text.lines().next()?;
    let warns = WARNINGS.iter().any(|part| line.contains(part));
    (priority < 8 && warns).then(|| format!("the kernel warned: {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_found_and_other_lines_are_not() {
        let slice = "4,902,5042351,-;sched_ext: kworker/0:1[9] has zero slice in pick_task_scx()\n";
        let note = "the kernel warned: sched_ext: kworker/0:1[9] has zero slice in pick_task_scx()";
        assert_eq!(warning(slice), Some(note.to_owned()));
        let stack =
            "4,903,5,-;WARNING: CPU: 1 PID: 9 at kernel/sched/ext.c:1 x+0x1/0x2\n SUBSYSTEM=x\n";
        assert!(warning(stack).is_some_and(|note| note.ends_with("x+0x1/0x2")));
        for other in [
            "6,904,5,-;sched_ext: BPF scheduler \"sfs\" enabled\n",
            "12,905,5,-;WARNING: a program wrote this\n",
            "nonsense",
            "",
        ] {
            assert_eq!(warning(other), None, "{other}");
        }
    }
}
