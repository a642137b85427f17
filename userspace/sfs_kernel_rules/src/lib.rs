//! The rules of the policy (ARCHITECTURE.md, docs/policy.md), stated apart from the kernel half, and
//! compared with it: before each callback the model looks at what the kernel half keeps, after it it
//! looks again, and the rules say what is to be there then. Only where callbacks do not interleave:
//! otherwise nobody could say what was there before.

mod accounts;
mod answers;
mod begins;
mod choices;
pub mod ends;
mod functions;
pub mod hints;
mod kicks;
mod kinds;
mod leaving;
mod lengths;
mod look;
mod names;
mod numbers;
mod overtaking;
mod policy;
mod queues;
mod ranks;
mod relief;
mod sandboxes;
mod shards;
mod shares;
mod stats;
mod ticks;
pub mod timers;
mod turns;
pub mod waiting;
pub mod watch;
