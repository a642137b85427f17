//! What a program is built from: its crate, and the workspace's crates that it needs.

use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::path::Path;

/// The workspace, from the top of the repository.
const WORKSPACE: &str = "userspace";

/// What the programs of these crates are built from, as folders from the top of the repository.
///
/// # Errors
/// If the description of a crate cannot be read.
pub fn folders(top: &Path, crates: &[&str]) -> Result<BTreeSet<String>> {
    let workspace = top.join(WORKSPACE);
    let mut found = BTreeSet::new();
    let mut open: Vec<String> = crates.iter().map(|name| name.to_string()).collect();
    while let Some(name) = open.pop() {
        let manifest = workspace.join(&name).join("Cargo.toml");
        if manifest.exists() && found.insert(format!("{WORKSPACE}/{name}")) {
            open.extend(needs(&manifest)?);
        }
    }
    Ok(found)
}

/// The names of the crates that a crate needs to be built; tests may need more.
fn needs(manifest: &Path) -> Result<Vec<String>> {
    let cannot = || format!("cannot read {}", manifest.display());
    let text = std::fs::read_to_string(manifest).with_context(cannot)?;
    let table: toml::Table = text.parse().with_context(cannot)?;
    let of = |key| table.get(key).and_then(toml::Value::as_table);
    let needed = ["dependencies", "build-dependencies"].map(of);
    let names = needed.into_iter().flatten().flat_map(toml::Table::keys);
    Ok(names.cloned().collect())
}

/// The entries of a `Cargo.lock` for libraries of others, with their versions and checksums.
pub fn libraries(lock: &str) -> String {
    let entries = lock.split("[[package]]");
    entries
        .filter(|entry| entry.contains("\nsource = "))
        .collect()
}

/// The settings of the workspace that hold for all crates (profiles, features of libraries, lints):
/// its `Cargo.toml` without the names of the crates.
///
/// # Errors
/// If it is none.
pub fn settings(manifest: &str) -> Result<String> {
    let mut table: toml::Table = manifest
        .parse()
        .context("cannot read the workspace's Cargo.toml")?;
    let workspace = table.get_mut("workspace").and_then(|of| of.as_table_mut());
    if let Some(workspace) = workspace {
        workspace.remove("members");
        let libraries = workspace.get_mut("dependencies");
        if let Some(libraries) = libraries.and_then(|of| of.as_table_mut()) {
            libraries.retain(|_, library| library.get("path").is_none());
        }
    }
    Ok(table.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make(top: &Path, name: &str, manifest: &str) {
        let folder = top.join(WORKSPACE).join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    }

    #[test]
    fn a_program_is_built_from_what_its_crates_need_and_not_from_what_their_tests_need() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path();
        make(
            top,
            "program",
            "[dependencies]\nlibrary.workspace = true\nserde = \"1\"\n[dev-dependencies]\nproof.workspace = true\n",
        );
        make(
            top,
            "library",
            "[dependencies]\n[build-dependencies]\nmaker.workspace = true\n",
        );
        make(top, "maker", "");
        make(top, "proof", "");
        let found = folders(top, &["program", "unknown"]).unwrap();
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        assert_eq!(
            found,
            ["userspace/library", "userspace/maker", "userspace/program"]
        );
        make(top, "maker", "[dependencies");
        let error = folders(top, &["program"]).unwrap_err().to_string();
        assert!(error.contains("maker"), "{error}");
    }

    #[test]
    fn crates_of_the_workspace_are_no_libraries_of_others() {
        let lock = "version = 4\n\n[[package]]\nname = \"ours\"\nversion = \"0.1.0\"\n\n[[package]]\nname = \"theirs\"\nversion = \"1.0.0\"\nsource = \"registry\"\n";
        let ours = lock.replace("0.1.0", "0.2.0");
        let theirs = lock.replace("1.0.0", "1.0.1");
        assert_eq!(libraries(lock), libraries(&ours));
        assert_ne!(libraries(lock), libraries(&theirs));
    }

    #[test]
    fn a_new_crate_is_no_setting_and_a_feature_or_a_profile_is() {
        let workspace = "[workspace]\nmembers = [\"a\"]\n[workspace.dependencies]\na = { path = \"a\" }\nserde = { version = \"1\" }\n[profile.release]\nlto = false\n";
        let of = |text: &str| settings(text).unwrap();
        let more = workspace.replace("[\"a\"]", "[\"a\", \"b\"]");
        let more = more.replace("a = {", "b = { path = \"b\" }\na = {");
        assert_eq!(of(workspace), of(&more));
        assert_ne!(of(workspace), of(&workspace.replace("false", "true")));
        let feature = workspace.replace("\"1\"", "\"1\", features = [\"derive\"]");
        assert_ne!(of(workspace), of(&feature));
        assert!(settings("[workspace").is_err());
    }
}
