//! Behaviour cases about the rest of the machine under scx_sfs: daemons, kernel threads,
//! crowds of tasks, tasks that are stopped or must not migrate, waits and idle CPUs, and the
//! rates of wake-ups and switches.

pub mod crowds;
pub mod daemons;
pub mod interruptions;
mod kinds;
pub mod rates;
pub mod sections;
pub mod waiting;
