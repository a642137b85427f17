//! The page that has the tables.

use anyhow::Result;
use sfs_jobs::tree::Tree;

const PAGE: &str = "docs/parity.md";

/// The tables follow this line of the page.
const MARK: &str = "<!-- What follows is written by sfs_lab parity --publish. -->";

/// Replaces the tables in the page.
///
/// # Errors
/// If the page has no place for them, or cannot be read or written.
pub fn publish(tree: &Tree, tables: &str) -> Result<()> {
    sfs_jobs::page::publish(tree, PAGE, MARK, tables)
}
