//! The program as its users run it: files in, files out, and what it says
//! about bad input.

#[path = "../common/mod.rs"]
mod common;
mod convert;
mod generate;
mod jitter;
mod place;
mod refuse;
mod replay;
mod sandboxes;
mod trial;
