//! Start times of processes. They distinguish a process from later ones with
//! the same id.

use std::io::{self, ErrorKind};

/// Index of the start time among the fields after the name, counted from 0: it
/// is field 22, and the name is field 2.
const BEHIND_NAME: usize = 19;

/// Returns when process `pid` started, in clock ticks since boot: field 22 of
/// `/proc/PID/stat`. Inside a time namespace the file has a different time;
/// read it outside.
///
/// # Errors
///
/// The process does not exist ([`ErrorKind::NotFound`]), or its file cannot be
/// read.
pub fn started_ticks(pid: i32) -> io::Result<u64> {
    let stat = match std::fs::read(format!("/proc/{pid}/stat")) {
        // The process has ended between open and read.
        Err(error) if error.raw_os_error() == Some(ESRCH) => {
            return Err(ErrorKind::NotFound.into());
        }
        stat => stat?,
    };
    start_in(&stat).ok_or_else(|| {
        let what = format!("/proc/{pid}/stat has no start time");
        io::Error::new(ErrorKind::InvalidData, what)
    })
}

/// The error number on Linux.
const ESRCH: i32 = 3;

/// Parses the start time. The name may contain anything, even brackets; the
/// numbers after it contain none.
fn start_in(stat: &[u8]) -> Option<u64> {
    let name_ends = stat.iter().rposition(|&byte| byte == b')')?;
    let behind = std::str::from_utf8(&stat[name_ends + 1..]).ok()?;
    behind.split_whitespace().nth(BEHIND_NAME)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_may_contain_anything() {
        let behind = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 530081 20 21";
        for name in ["sh", "a b", ") S 1 2", "((", "a\nb", ""] {
            let stat = format!("77 ({name}) {behind}\n");
            assert_eq!(start_in(stat.as_bytes()), Some(530_081), "{name:?}");
        }
        assert_eq!(start_in(b"77 (\xff) S 1"), None);
        assert_eq!(start_in(b""), None);
        let no_number = format!("7 (x) {}", behind.replace("530081", "x"));
        assert_eq!(start_in(no_number.as_bytes()), None);
    }

    #[test]
    fn only_existing_processes_have_a_start_time() {
        let this = i32::try_from(std::process::id()).unwrap();
        assert_eq!(started_ticks(this).unwrap(), started_ticks(this).unwrap());
        let nobody = started_ticks(i32::MAX).unwrap_err();
        assert_eq!(nobody.kind(), ErrorKind::NotFound);
    }
}
