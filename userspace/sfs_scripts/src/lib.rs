//! Tests of the repository's shell scripts, and of its Makefile, are in `tests/`: each runs
//! the real script in a temporary folder and compares its exit status, output and files. This
//! library owns what they share: a copy of parts of the repository ([`Place`]), a machine
//! with nothing but a few tools ([`Host`]), and what a command said ([`Said`]). The check of the
//! documentation's links ([`links`]) is here as well.

mod host;
pub mod links;
mod place;
mod said;

pub use host::{Host, NOBODY};
pub use place::{find, top, Place};
pub use said::{run, Said};
