//! The documentation as a book: `make book`.
//!
//! The pages stay where they are in the repository, and their links lead to each other and to
//! files there. `docs/SUMMARY.md` has their order. [`pages`] copies them with what they link to
//! into a folder that mdBook renders ([`book`]), so the same links work in the book; [`links`]
//! checks all of them in the result. [`screen`] draws what a program has written on a terminal.

#![forbid(unsafe_code)]

pub mod book;
pub mod cli;
pub mod links;
pub mod pages;
pub mod screen;
