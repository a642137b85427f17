//! Functions that do a fixed amount of work: a number of iterations over a
//! working set. If a scheduler makes them slow, by cold caches for example,
//! they use more CPU time, which functions that count CPU time hide.
//!
//! | module | content |
//! |---|---|
//! | [`bodies`] | the work itself |
//! | [`rates`] | how many iterations fill a time, and what an invocation takes alone |
//! | [`calibration`] | finds the rates, by measurements of any origin |
//! | [`memory`] | whether the working sets fit this machine |

#![forbid(unsafe_code)]

pub mod bodies;
pub mod calibration;
pub mod memory;
pub mod rates;
