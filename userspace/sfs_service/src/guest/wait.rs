//! Waits with a limit.

use std::time::Duration;

use anyhow::{ensure, Result};
use sfs_testbed::clock::{now, sleep};

/// Time between two looks.
const PAUSE: Duration = Duration::from_secs(1);

/// Waits until `done`, which is called each second; `what` describes it in an error.
///
/// # Errors
///
/// It has not become true within `seconds`.
pub fn within(seconds: u64, what: &str, mut done: impl FnMut() -> bool) -> Result<()> {
    let end = now() + Duration::from_secs(seconds);
    while !done() {
        ensure!(now() < end, "waited for {seconds} s in vain: {what}");
        sleep(PAUSE);
    }
    Ok(())
}

/// Sleeps for so many seconds.
pub fn pause(seconds: u64) {
    sleep(Duration::from_secs(seconds));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_bounded() {
        let mut asked = 0;
        let done = within(5, "a second look", || {
            asked += 1;
            asked == 2
        });
        done.unwrap();
        let said = within(0, "the scheduler is enabled", || false).unwrap_err();
        let want = "waited for 0 s in vain: the scheduler is enabled";
        assert_eq!(said.to_string(), want);
    }
}
