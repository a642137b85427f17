//! Reproduces the figures of the papers behind scx_sfs: SFS (SC'22), the thesis
//! behind fc-microbenchmark, Hermes and FaaSched.
//!
//! A [`figure`](figures) defines what is measured ([`plan`]) and how it is
//! drawn. [`measure`] runs the settings through [`sfs_lab::bench`], which keeps
//! finished rows; [`data`] reads the results. [`write`](mod@write) writes
//! tables ([`table`]) and pictures ([`chart`]) to files and to
//! `docs/results.md`: no figure there is typed by hand. What the papers publish
//! ([`published`]) stands beside what was measured ([`metric`]).

#![forbid(unsafe_code)]

pub mod chart;
pub mod cli;
pub mod data;
pub mod figures;
pub mod measure;
pub mod metric;
pub mod plan;
pub mod published;
pub mod table;
pub mod write;
