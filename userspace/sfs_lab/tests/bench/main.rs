//! What `bench` does with rows, settings, interruptions and failures: with the programs
//! themselves, and a stand-in for the VM.

#[path = "../common/mod.rs"]
mod common;
mod ending;
mod failing;
mod keeping;
mod refusing;
mod seeds;
#[path = "../common/stand_in.rs"]
mod stand_in;
mod tree;
