//! The page that has the tables.

use anyhow::{Context, Result};
use sfs_jobs::failure::refuse;
use sfs_jobs::tree::Tree;
use std::fs;

const PAGE: &str = "docs/parity.md";

/// The tables follow this line of the page.
const MARK: &str = "<!-- What follows is written by sfs_lab parity --publish. -->";

/// Replaces the tables in the page.
///
/// # Errors
/// If the page has no place for them, or cannot be read or written.
pub fn publish(tree: &Tree, tables: &str) -> Result<()> {
    let path = tree.at(PAGE);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {PAGE}"))?;
    let mark = format!("\n{MARK}\n");
    let Some((before, _)) = text.split_once(&mark) else {
        refuse!("there is no line '{MARK}' in {PAGE}");
    };
    let new = path.with_extension("md.new");
    fs::write(&new, format!("{before}{mark}\n{tables}"))
        .and_then(|()| fs::rename(&new, &path))
        .with_context(|| format!("cannot write {PAGE}"))
}
