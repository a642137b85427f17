//! Runs the behaviour suite in virtual machines: `tests/run`.
//!
//! The program `sfs_behaviour` has the cases and runs them in a guest. This crate owns what
//! happens on the host: it divides the cases among guests (`vm/run`), passes their output on
//! case by case, fails cases in which CPU time was wasted, plays failed cases again on other
//! machines, and draws perturbed machines (`--perturb`).
//!
//! It also starts the guests for mixes of load (`make stress`) and for the search for tenants
//! that cheat (`sfs_suite search`), and shows that runs are the same (`sfs_suite same`).

#![forbid(unsafe_code)]

pub mod blocks;
pub mod cases;
pub mod cli;
pub mod count;
pub mod guest;
pub mod kind;
pub mod long;
pub mod perturb;
pub mod pool;
pub mod run;
pub mod same;
pub mod search;
pub mod stress;
mod vm;
