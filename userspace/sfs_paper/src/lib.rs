//! Reproduces the figures of the papers that scx_sfs is about: SFS (SC'22), the
//! thesis behind fc-microbenchmark, FaaSched.
//!
//! A [`figure`](figures) says what has to be measured ([`plan`]) and how it is
//! drawn from that. [`measure`] hands the settings to [`sfs_lab::bench`], which
//! keeps what is finished; [`data`] reads back what it left. [`write`](mod@write)
//! puts tables ([`table`]) and pictures ([`chart`]) into files, and into
//! `docs/results.md`: no figure there is typed by hand.

#![forbid(unsafe_code)]

pub mod chart;
pub mod cli;
pub mod data;
pub mod figures;
pub mod measure;
pub mod plan;
pub mod table;
pub mod write;
