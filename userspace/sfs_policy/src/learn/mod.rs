//! Service times of functions, learned from their completions, and the resulting rank of an
//! invocation.
//!
//! | module | part |
//! |---|---|
//! | [`buckets`] | CPU time in steps: four to a doubling |
//! | [`histogram`] | the service times of a function, weighted towards the recent ones |
//! | `burst` | when invocations first block |
//! | `density` | their distribution, estimated from few of them |
//! | [`rank`](mod@rank) | from a distribution to a rank for each attained service |
//! | [`Table`] | ranks as the kernel half reads them; functions with similar ranks share one |
//! | [`Learner`] | completions in, [`Change`]s of tables out |
//! | [`state`] | the learned state as bytes, for the next start |
//!
//! A function is identified by a 64-bit key, whatever that stands for. docs/policy.md describes
//! how ranks become an order, and the measured benefit of each rule.
//!
//! # Protection against abuse
//!
//! - **A function that changes**, from short to suddenly long, runs past all its earlier
//!   service times. From there on its ranks worsen, to those of an unknown function with the
//!   same attained service: its own history ends there, and the overall distribution decides.
//! - **Many functions** are many unknown functions, with the default table. They are forgotten
//!   before functions that are invoked again. Without room for another table they take the
//!   nearest.
//! - **No history** means one table for all: attained service decides, in levels of doubling
//!   length.

pub mod buckets;
mod burst;
mod density;
mod functions;
pub mod histogram;
mod learner;
mod pace;
pub mod rank;
pub mod state;
mod table;

pub use learner::{Change, End, Known, LearnConfig, Learner, Snapshot, DEFAULT_FUNCTIONS};
pub use pace::{pause_after, refresh_after, wake_after};
pub use rank::Aim;
pub use state::StateError;
pub use table::Table;
