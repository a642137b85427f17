//! Runs the behaviour suite in virtual machines: `tests/run`.
//!
//! The program `sfs_behaviour` has the cases and runs them in a guest. This crate owns what
//! happens on the host: it divides the cases among guests (`vm/run`), passes their output on
//! case by case, fails cases in which CPU time was wasted, plays failed cases again on other
//! machines, and draws perturbed machines (`--perturb`).

#![forbid(unsafe_code)]

pub mod blocks;
pub mod cases;
pub mod cli;
pub mod count;
pub mod guest;
pub mod kind;
pub mod perturb;
pub mod pool;
pub mod run;
pub mod stress;
