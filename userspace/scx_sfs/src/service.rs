//! Notifications to the service manager (sd_notify(3)); no effect without one.

use std::env;
use std::time::{Duration, Instant};

use sd_notify::NotifyState;
use tracing::debug;

/// Number of keep-alives in each period of the service manager's watchdog.
const PER_PERIOD: u32 = 3;

/// Delay before the next check after a failed one.
const AGAIN: Duration = Duration::from_secs(1);

/// Returns whether a service manager expects notifications.
pub fn is_supervised() -> bool {
    env::var_os("NOTIFY_SOCKET").is_some()
}

/// Reports that the scheduler is loaded and enabled.
pub fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// Reports that the scheduler is being reloaded.
pub fn reloading() {
    let mut states = vec![
        NotifyState::Reloading,
        NotifyState::Watchdog,
        NotifyState::Status("the kernel asks for a restart (CPU hotplug)"),
    ];
    states.extend(NotifyState::monotonic_usec_now().ok());
    tell(&states);
}

/// Reports that the scheduler is about to be unloaded.
pub fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// Extends the start timeout by `longer`, with the reason.
pub fn starting(why: &str, longer: Duration) {
    // Loading takes time on top of it.
    let longer = longer + Duration::from_secs(30);
    let longer = u32::try_from(longer.as_micros()).unwrap_or(u32::MAX);
    tell(&[
        NotifyState::ExtendTimeoutUsec(longer),
        NotifyState::Status(why),
    ]);
}

/// A failure is not an error: the manager may be restarting.
fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        debug!("cannot notify the service manager: {error}");
    }
}

/// The service manager's watchdog: it restarts a service that sends no sign of life for a
/// while.
#[derive(Debug)]
pub struct Watchdog {
    every: Duration,
    due: Instant,
    complained: bool,
}

impl Watchdog {
    /// Returns the watchdog, if the service manager has one for this service.
    pub fn of_environment() -> Option<Self> {
        sd_notify::watchdog_enabled().map(Self::new)
    }

    fn new(period: Duration) -> Self {
        let every = period / PER_PERIOD;
        Self {
            every,
            due: Instant::now() + every,
            complained: false,
        }
    }

    /// Returns the time until the next sign of life is due.
    pub fn left(&self) -> Duration {
        self.due.saturating_duration_since(Instant::now())
    }

    /// Sends a sign of life if `alive` is Ok. Otherwise returns the reason, once for each
    /// series of failures.
    pub fn keep_alive(&mut self, alive: Result<(), String>) -> Option<String> {
        match alive {
            Ok(()) => {
                tell(&[NotifyState::Watchdog]);
                self.due = Instant::now() + self.every;
                self.complained = false;
                None
            }
            Err(why) => {
                self.due = Instant::now() + AGAIN.min(self.every);
                (!std::mem::replace(&mut self.complained, true)).then_some(why)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_of_life_come_well_before_the_period_is_over() {
        let mut watchdog = Watchdog::new(Duration::from_secs(60));
        assert!(watchdog.left() <= Duration::from_secs(20));
        assert!(watchdog.left() > Duration::from_secs(15));
        assert_eq!(watchdog.keep_alive(Ok(())), None);
        assert!(watchdog.left() > Duration::from_secs(15));
    }

    #[test]
    fn a_problem_is_reported_once_and_checked_again_soon() {
        let mut watchdog = Watchdog::new(Duration::from_secs(60));
        let wrong = || Err("wrong".to_owned());
        assert_eq!(watchdog.keep_alive(wrong()), Some("wrong".to_owned()));
        assert!(watchdog.left() <= AGAIN);
        assert_eq!(watchdog.keep_alive(wrong()), None);
        assert_eq!(watchdog.keep_alive(Ok(())), None);
        assert_eq!(watchdog.keep_alive(wrong()), Some("wrong".to_owned()));
    }
}
