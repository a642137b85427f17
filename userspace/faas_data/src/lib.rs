//! The data model of all programs that deal with function workloads: the
//! content of their files, and the definitions of their numbers.
//!
//! | module | content |
//! |---|---|
//! | [`trace`] | arrivals and their work: read, checked, written |
//! | [`kind`] | what a phase of an invocation does |
//! | [`fixed`] | phases that do an amount of work, not of CPU time |
//! | [`result`] | measurements of each invocation: read, checked, written |
//! | [`measure`] | turnaround, slowdown and run-time effectiveness of one invocation; the split into short and long |
//! | [`stats`] | means, percentiles and spread of many |
//! | [`summary`] | the numbers of one run, as JSON |
//! | [`input`] | strict readers of text files, whose errors name file and line |
//! | [`output`] | files that are either complete or absent |
//! | [`progress`] | a progress bar with the time left |

#![forbid(unsafe_code)]

pub mod fixed;
pub mod input;
pub mod kind;
pub mod measure;
pub mod output;
pub mod progress;
pub mod result;
pub mod stats;
pub mod summary;
pub mod trace;
