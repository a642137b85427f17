//! One data model for all programs that deal with function workloads: what is in their
//! files, and what the words mean that their numbers are called by.
//!
//! | module | what |
//! |---|---|
//! | [`trace`] | what arrives when and what it needs: read, checked, written |
//! | [`kind`] | what a phase of an invocation does in its time |
//! | [`result`] | what was measured of each invocation: read, checked, written |
//! | [`measure`] | turnaround, slowdown and run-time effectiveness of one invocation; the split into short and long |
//! | [`stats`] | means, percentiles and spread of many |
//! | [`summary`] | the numbers of one run, as JSON |
//! | [`input`] | strict readers of text files, whose errors name file and line |
//! | [`output`] | files that are complete or not there at all |
//! | [`progress`] | a bar with the time left |

#![forbid(unsafe_code)]

pub mod input;
pub mod kind;
pub mod measure;
pub mod output;
pub mod progress;
pub mod result;
pub mod stats;
pub mod summary;
pub mod trace;
