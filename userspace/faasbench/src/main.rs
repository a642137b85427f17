//! Workloads, replay and measurement for function schedulers.

fn main() {}
