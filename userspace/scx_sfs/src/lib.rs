//! The parts of the loader that need no kernel half, for its tests and examples.

pub mod hints;
pub mod names;
