//! The league: many workloads under many schedulers, and where scx_sfs without an option is
//! not the best.
//!
//! [`workloads`] has the rows and [`columns`] the schedulers. [`measure`] replays what has no
//! result yet, in VMs in virtual time, as `make bench` does, and [`results`] keeps the figures of
//! each seed with the commit. [`goals`] says what "the best" means, [`standing`] who has what
//! over all seeds, and [`page`] writes the tables into `docs/league.md`.

pub mod cli;
pub mod columns;
pub mod figures;
pub mod goals;
pub mod measure;
pub mod page;
pub mod results;
pub mod standing;
pub mod workloads;
