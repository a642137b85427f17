//! The kernel's text about a scheduler's end. Its reason and dump contain task names, which
//! tasks choose themselves, so none of it is printed unescaped.

use std::ffi::{c_char, CString};

use scx_utils::UserExitInfo;
use sfs_text::{line, lines, until_nul, LINE_CHARS};

/// Prefix of each line of the kernel's dump. No other line has it, so a task name in the dump
/// cannot pass for a line of the loader.
const DUMP_PREFIX: &str = "dump: ";

/// The kernel half's copy of the kernel's `scx_exit_info`.
#[derive(Clone, Copy)]
pub struct RawExit<'text> {
    /// The kernel's number for the kind of exit; 0: not yet.
    pub kind: i32,
    /// The exit code, on kernels that have one.
    pub code: Option<i64>,
    /// The CPU on which it happened, on kernels that report it.
    pub cpu: Option<i32>,
    /// The kind as text.
    pub reason: &'text [c_char],
    /// The detailed message.
    pub message: &'text [c_char],
}

impl RawExit<'_> {
    /// Returns it in the form of the other sched_ext schedulers, without the dump. Each text is
    /// escaped to one line.
    pub fn into_info(self) -> UserExitInfo {
        let (reason, message) = (words(self.reason), words(self.message));
        UserExitInfo::new(
            &self.kind,
            self.code.as_ref().map_or(std::ptr::null(), |code| code),
            self.cpu.as_ref().map_or(std::ptr::null(), |cpu| cpu),
            reason.as_ptr(),
            message.as_ptr(),
            std::ptr::null(),
        )
    }
}

/// Converts a C string to a printable one.
fn words(text: &[c_char]) -> CString {
    // The text contains no NUL: one would appear as two characters.
    CString::new(line(until_nul(text), LINE_CHARS)).unwrap_or_default()
}

/// Returns the lines of the kernel's dump up to its first NUL; none if it is empty.
pub fn dump_lines(dump: &[u8]) -> Vec<String> {
    let text = dump.split(|byte| *byte == 0).next().unwrap_or_default();
    if text.is_empty() {
        return Vec::new();
    }
    lines(text, DUMP_PREFIX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Value in `scx_exit_info` of the kernel half.
    const STALL: i32 = 1026;

    fn chars(text: &[u8]) -> Vec<c_char> {
        text.iter().map(|byte| *byte as c_char).collect()
    }

    /// Returns the report of a stalled task with this name.
    fn said_of(name: &[u8]) -> String {
        let reason = chars(b"runnable task stall\0");
        let message = chars(&[name, b"[7] failed to run for 30.5s\0rest"].concat());
        let raw = RawExit {
            kind: STALL,
            code: Some(0),
            cpu: Some(3),
            reason: &reason,
            message: &message,
        };
        format!("{:#}", raw.into_info().report().unwrap_err())
    }

    #[test]
    fn the_text_is_that_of_other_schedulers() {
        let expected = "EXIT: runnable task stall (worker[7] failed to run for 30.5s) on CPU 3";
        assert_eq!(said_of(b"worker"), expected);
    }

    #[test]
    fn no_byte_of_a_name_forges_a_line_or_loses_the_reason() {
        for byte in 1..=u8::MAX {
            for name in [
                vec![byte],
                vec![b'a', byte],
                vec![byte, b'z'],
                vec![byte; 15],
            ] {
                let said = said_of(&name);
                let (start, end) = (
                    "EXIT: runnable task stall (",
                    "[7] failed to run for 30.5s) on CPU 3",
                );
                assert!(said.starts_with(start) && said.ends_with(end), "{said:?}");
                assert!(!said.contains(char::is_control), "{said:?}");
            }
        }
    }

    #[test]
    fn a_missing_reason_is_tolerated() {
        let nothing = RawExit {
            kind: 0,
            code: None,
            cpu: None,
            reason: &[],
            message: &[],
        };
        assert!(nothing.into_info().report().is_ok());
        let failed = RawExit {
            kind: STALL,
            ..nothing
        };
        assert!(failed.into_info().report().is_err());
    }

    #[test]
    fn each_line_of_a_dump_is_marked() {
        assert_eq!(dump_lines(b"\0rest"), [""; 0]);
        let shown = dump_lines(b"CPU states\n R f\nEXIT: [7]\n\0rest\n");
        assert_eq!(shown, ["dump: CPU states", "dump:  R f", "dump: EXIT: [7]"]);
    }

    proptest! {
        #[test]
        fn any_name_is_one_line(name in proptest::collection::vec(1..=u8::MAX, 0..16)) {
            let said = said_of(&name);
            prop_assert!(!said.contains(char::is_control), "{said:?}");
        }
    }
}
