//! What several tests need.

/// Returns whether something can be measured here; if not, a test that measures is to be
/// skipped: [`CANNOT_MEASURE`].
pub fn can_measure() -> bool {
    let permitted = faas_replay::realtime::permitted();
    let state = std::fs::read_to_string("/sys/kernel/sched_ext/state").unwrap_or_default();
    permitted && matches!(state.trim(), "" | "disabled")
}

/// Why such a test is skipped.
pub const CANNOT_MEASURE: &str = "no real-time priority, or a sched_ext scheduler is loaded";
