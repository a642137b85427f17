//! Behaviour cases about the loader `scx_sfs`: loading, unloading and restarts, what it
//! prints, the files it keeps, and faults of its surroundings.

pub mod disk;
pub mod faults;
pub mod files;
pub mod lifecycle;
pub mod operator;
pub mod restarts;
pub mod texts;
