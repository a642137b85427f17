//! Variants of the kernel half in the model (`sfs_kernel_model`): compiled to count what is reached
//! ([`coverage`]), with sanitizers ([`sanitize`]), or with one defect each, made on purpose
//! ([`campaign`]); and kernel halves of the past ([`past`]).
//!
//! The model is built once, with the kernel half as a shared library ([`model`]). A variant is
//! another such library, which the program loads instead ([`runs`]).

#![forbid(unsafe_code)]

pub mod campaign;
pub mod coverage;
pub mod lcov;
pub mod llvm;
pub mod model;
pub mod mutate;
pub mod past;
pub mod report;
pub mod rules;
pub mod runs;
pub mod sanitize;
pub mod source;
