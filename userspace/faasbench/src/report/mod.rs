//! Comparing several runs.

pub mod words;
