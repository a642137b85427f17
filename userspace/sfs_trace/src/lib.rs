//! `scx_sfs trace` and `scx_sfs explain`: what invocations do, event by event, beside a running
//! scheduler.
//!
//! A small BPF program of this crate reports scheduling events. It reads what scx_sfs keeps about
//! each task in the scheduler's own maps. The scheduler is not changed, and pays nothing while
//! nobody traces.
//!
//! | module | purpose |
//! |---|---|
//! | [`account`] | the state machine: from events to segments of invocations |
//! | [`event`], [`kind`], [`invocation`], [`roster`], [`cpus`] | its types |
//! | `scheduler`, `watch`, `messages`, `follow` | the scheduler's maps, the BPF program, reading it |
//! | [`names`] | names of cgroups, functions and programs |
//! | [`explain`] | the slowest invocations, and where their time went |
//! | [`perfetto`] | traces in Perfetto's format |
//! | [`commands`] | the commands |
#![deny(unsafe_code)]

pub mod account;
#[allow(unsafe_code, reason = "generated")]
mod bpf_intf;
#[allow(unsafe_code, reason = "generated")]
mod bpf_skel;
pub mod commands;
pub mod cpus;
pub mod event;
pub mod explain;
mod follow;
pub mod invocation;
pub mod kind;
mod messages;
pub mod names;
pub mod perfetto;
pub mod roster;
mod scheduler;
mod watch;
