//! Pages of the documentation whose end is written by a program.

use crate::failure::refuse;
use crate::tree::Tree;
use anyhow::{Context, Result};
use std::fs;

/// Replaces what follows the line `mark` of `page`, a path from the root, by `text`.
///
/// # Errors
/// If the page has no such line, or cannot be read or written.
pub fn publish(tree: &Tree, page: &str, mark: &str, text: &str) -> Result<()> {
    let path = tree.at(page);
    let present = fs::read_to_string(&path).with_context(|| format!("cannot read {page}"))?;
    let line = format!("\n{mark}\n");
    let Some((before, _)) = present.split_once(&line) else {
        refuse!("there is no line '{mark}' in {page}");
    };
    let new = path.with_extension("md.new");
    fs::write(&new, format!("{before}{line}\n{text}"))
        .and_then(|()| fs::rename(&new, &path))
        .with_context(|| format!("cannot write {page}"))
}
