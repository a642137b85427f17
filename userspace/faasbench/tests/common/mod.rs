//! What several tests need.

/// Whether something can be measured here; says so if not.
pub fn can_measure() -> bool {
    let permitted = faasbench::replay::realtime::permitted();
    let state = std::fs::read_to_string("/sys/kernel/sched_ext/state").unwrap_or_default();
    let ready = permitted && matches!(state.trim(), "" | "disabled");
    if !ready {
        eprintln!("skipped: no real-time priority, or a sched_ext scheduler is loaded");
    }
    ready
}
