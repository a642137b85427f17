//! Rendering by mdBook.

use std::fs;
use std::path::{absolute, Path};

use anyhow::{Context, Result};
use mdbook_driver::config::Config;
use mdbook_driver::MDBook;

use crate::pages::Pages;

/// Settings of the book, below the top of the repository.
const SETTINGS: &str = "docs/book.toml";

/// Builds the book of the repository at `top` in the folder `out`, whose content is replaced.
/// Returns the number of chapters.
///
/// # Errors
///
/// A page, the summary or the settings cannot be read or understood, or a file cannot be written.
pub fn build(top: &Path, out: &Path) -> Result<usize> {
    let pages = Pages::read(top)?;
    let stage = tempfile::tempdir().context("cannot make a folder for the pages")?;
    pages.copy_to(stage.path())?;
    let settings = top.join(SETTINGS);
    let mut config = Config::from_disk(&settings)
        .with_context(|| format!("cannot read {}", settings.display()))?;
    // The links are those of the repository: its top is the top of the book.
    config.book.src = stage.path().to_owned();
    config.build.build_dir =
        absolute(out).with_context(|| format!("cannot find {}", out.display()))?;
    fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    let book = MDBook::load_with_config(absolute(top)?, config)
        .and_then(|book| book.build())
        .with_context(|| format!("cannot render the book of {}", top.display()));
    book.map(|()| pages.chapters().len())
}
