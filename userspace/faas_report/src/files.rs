//! The pictures as separate files.

use crate::{charts, style, Comparison};
use anyhow::{Context, Result};
use faas_data::output::Output;
use std::path::Path;

/// Writes every picture to `folder`, created if missing, as NAME.svg.
///
/// # Errors
/// If the folder or a file cannot be written.
pub fn write_svg(comparison: &Comparison, folder: &Path) -> Result<()> {
    let cannot = || format!("cannot create the folder {}", folder.display());
    std::fs::create_dir_all(folder).with_context(cannot)?;
    let style = style::file();
    for picture in charts::all(comparison) {
        let output = Output::create(&folder.join(format!("{}.svg", picture.name)))?;
        output.commit(picture.file(&style).as_bytes())?;
    }
    Ok(())
}
