//! `scx_sfs top`: a running scx_sfs on the terminal. The data come from the scheduler's
//! statistics, from `/proc`, and from the files of the sandboxes' cgroups; nothing is asked of the
//! kernel half but what the statistics have anyway.
//!
//! | module | purpose |
//! |---|---|
//! | `command` | the options; what is printed instead of shown |
//! | [`sample`] | the data: what is known at one moment |
//! | `source`, `machine`, `sandboxes`, `waste` | take a sample |
//! | `sampler` | takes samples in a thread |
//! | `history`, `state`, `table`, `rows` | what is shown of samples, without any drawing |
//! | `keys` | what keys and the mouse do |
//! | `draw` | draws the state |
//! | `words`, `plain` | numbers as words, a screen as text |
//! | `terminal` | the terminal, signals, the loop |
#![forbid(unsafe_code)]

mod command;
mod draw;
mod history;
mod keys;
mod machine;
mod plain;
mod rows;
pub mod sample;
mod sampler;
mod sandboxes;
mod source;
mod state;
mod table;
mod terminal;
mod waste;
mod words;

pub use command::TopCommand;
