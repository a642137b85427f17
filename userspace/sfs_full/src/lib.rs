//! Runs all tests that there are, in parts ([`full`]), and the behaviour suite on many machines
//! ([`matrix`]).

#![forbid(unsafe_code)]

mod code;
pub mod full;
mod kept;
pub mod matrix;
mod part;
mod sources;
mod table;
