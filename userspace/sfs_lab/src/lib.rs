//! Runs the measurements of this repository.
//!
//! `make` is the front: each of its targets that measures is a subcommand of the program
//! `sfs_lab`. The measurements themselves are made by other programs, in VMs
//! (`vm/run`) or in simulation (`sfs_sim`), and are summarised by `faasbench`. This crate
//! decides what has to be run, runs it, and keeps what came out. It also builds the
//! schedulers that scx_sfs is compared with.
//!
//! [`bench::run`] is also called by `sfs_paper`, with a [`bench::Settings`] of its own.

#![forbid(unsafe_code)]

pub mod bench;
pub mod cli;
mod lock;
pub mod overhead;
pub mod peers;
pub mod scale;
