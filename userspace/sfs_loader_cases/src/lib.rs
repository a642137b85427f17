//! Behaviour cases about the loader `scx_sfs`: loading, unloading and restarts,
//! its output, its files, its explanations of slow requests, faults of its
//! environment, and what ends it after a trial.

pub mod advice;
pub mod configuration;
pub mod disk;
pub mod explanations;
pub mod faults;
pub mod files;
pub mod guards;
pub mod lifecycle;
pub mod metrics;
pub mod operator;
pub mod restarts;
pub mod texts;
