//! What the service manager is told (sd_notify(3)); nothing where there is none.

use std::env;
use std::time::{Duration, Instant};

use sd_notify::NotifyState;
use tracing::debug;

/// Keep-alives for each period of the service manager's watchdog.
const PER_PERIOD: u32 = 3;

/// Time until what has not shown to be alive is looked at again.
const AGAIN: Duration = Duration::from_secs(1);

/// Returns whether a service manager wants to hear.
pub fn is_supervised() -> bool {
    env::var_os("NOTIFY_SOCKET").is_some()
}

/// The scheduler is loaded and enabled.
pub fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// The scheduler is loaded anew.
pub fn reloading() {
    let mut states = vec![
        NotifyState::Reloading,
        NotifyState::Watchdog,
        NotifyState::Status("the kernel asks for a restart (CPU hotplug)"),
    ];
    states.extend(NotifyState::monotonic_usec_now().ok());
    tell(&states);
}

/// The scheduler is about to be unloaded.
pub fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// The start takes so much longer, for the reason given.
pub fn starting(why: &str, longer: Duration) {
    // Time to load comes on top of it.
    let longer = longer + Duration::from_secs(30);
    let longer = u32::try_from(longer.as_micros()).unwrap_or(u32::MAX);
    tell(&[
        NotifyState::ExtendTimeoutUsec(longer),
        NotifyState::Status(why),
    ]);
}

/// The manager may have gone, and comes back.
fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        debug!("the service manager cannot be told: {error}");
    }
}

/// The service manager's watchdog: it restarts what does not say for a while that it is
/// alive.
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

    /// Returns how long it may be until the next sign of life.
    pub fn left(&self) -> Duration {
        self.due.saturating_duration_since(Instant::now())
    }

    /// Gives a sign of life if `alive` has none of its reasons against it. Returns the
    /// reason, once for each time that there is one.
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
    fn what_is_wrong_is_said_once_and_looked_at_soon() {
        let mut watchdog = Watchdog::new(Duration::from_secs(60));
        let wrong = || Err("wrong".to_owned());
        assert_eq!(watchdog.keep_alive(wrong()), Some("wrong".to_owned()));
        assert!(watchdog.left() <= AGAIN);
        assert_eq!(watchdog.keep_alive(wrong()), None);
        assert_eq!(watchdog.keep_alive(Ok(())), None);
        assert_eq!(watchdog.keep_alive(wrong()), Some("wrong".to_owned()));
    }
}
