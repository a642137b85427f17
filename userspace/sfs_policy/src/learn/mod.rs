//! What functions need, learned from their completions, and the rank of an
//! invocation that follows.
//!
//! | module | part |
//! |---|---|
//! | [`buckets`] | CPU time in steps: four to a doubling |
//! | [`histogram`] | the service times of a function, the recent ones weighing most |
//! | [`rank`](mod@rank) | from a distribution to a rank for each attained service |
//! | [`Table`] | ranks as the kernel half reads them; functions with like ranks share one |
//! | [`Learner`] | completions in, [`Change`]s of tables out |
//! | [`state`] | what is known as bytes, for the next start |
//!
//! A function is called by a 64-bit key, whatever that stands for. How ranks
//! become an order is in docs/policy.md, with what each rule was found to be
//! worth.
//!
//! # What nobody can gain
//!
//! - **A function that changes**, short so far and suddenly long, has past all
//!   that it ever needed the ranks of an unknown function that has had as much: what is
//!   known of it ends there, and what is known of all decides.
//! - **Many functions** are many unknown functions, with the default table. They are
//!   forgotten before functions that are invoked again, and when there is no
//!   room for another table they take the nearest.
//! - **No history** means no tables: SFS decides.

pub mod buckets;
mod functions;
pub mod histogram;
mod learner;
pub mod rank;
pub mod state;
mod table;

pub use learner::{Change, Known, LearnConfig, Learner, Snapshot, DEFAULT_FUNCTIONS};
pub use rank::Aim;
pub use state::StateError;
pub use table::Table;
