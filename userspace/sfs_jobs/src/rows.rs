//! Results that are kept in git: a CSV file with a line for each.

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde::Serialize;
use std::fs::{self, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// What the file has; nothing if there is none.
///
/// # Errors
/// If it cannot be read, or is no such file.
pub fn read<R: DeserializeOwned>(path: &Path) -> Result<Vec<R>> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        text => text.with_context(|| format!("cannot read {}", path.display()))?,
    };
    csv::Reader::from_reader(text.as_bytes())
        .deserialize()
        .collect::<Result<_, _>>()
        .with_context(|| format!("{} is damaged; take it out of git anew", path.display()))
}

/// Replaces the file as a whole, so it is never half written.
///
/// # Errors
/// If it cannot be written.
pub fn write<R: Serialize>(path: &Path, rows: &[R]) -> Result<()> {
    replace(path, rows).with_context(|| format!("cannot write {}", path.display()))
}

fn replace<R: Serialize>(path: &Path, rows: &[R]) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows {
        writer.serialize(row)?;
    }
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(&writer.into_inner()?)?;
    fs::set_permissions(file.path(), Permissions::from_mode(0o644))?;
    file.persist(path)?;
    Ok(())
}
