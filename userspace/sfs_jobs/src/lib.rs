//! Shared by programs that run other programs: paths in the repository ([`tree`]), jobs
//! that end with their caller ([`job`]), signals that ask a run to end ([`signals`]), progress
//! ([`progress`]), options that are also variables ([`options`]), results that are kept in git ([`rows`]), the commit that
//! they are of ([`commit`]), the pages that show them ([`page`]), and the exit status of an error
//! ([`failure`]).

#![forbid(unsafe_code)]

pub mod commit;
pub mod failure;
pub mod job;
pub mod options;
pub mod page;
pub mod progress;
pub mod rows;
pub mod signals;
pub mod tree;
