//! Tools and run-time libraries of LLVM that belong to the clang of the build.

use anyhow::{bail, Result};
use sfs_jobs::tree::in_path;
use std::path::PathBuf;
use std::process::Command;

/// The major version of a clang, 0 if it does not say.
#[must_use]
pub fn major(clang: &str) -> u32 {
    let output = Command::new(clang).arg("--version").output();
    output.map_or(0, |output| {
        major_in(&String::from_utf8_lossy(&output.stdout))
    })
}

fn major_in(text: &str) -> u32 {
    let rest = text.split_once("version ").map_or("", |(_, rest)| rest);
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next();
    digits.and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// `llvm-cov-19` for the tool `llvm-cov` and clang 19, or the tool without the number if it has
/// this version.
///
/// # Errors
/// If it is missing: the sentence says what to install.
pub fn tool(name: &str, clang: &str) -> Result<PathBuf> {
    let version = major(clang);
    if let Some(path) = in_path(&format!("{name}-{version}")) {
        return Ok(path);
    }
    match in_path(name) {
        Some(path) if major(&path.to_string_lossy()) == version => Ok(path),
        _ => bail!(
            "there is no {name} of version {version}, which {clang} has; run scripts/setup-host \
             variants, or install Debian's package llvm-{version}."
        ),
    }
}

/// A run-time library of clang, such as `libclang_rt.asan-x86_64.so`.
///
/// # Errors
/// If it is missing: the sentence says what to install.
pub fn runtime(name: &str, clang: &str) -> Result<PathBuf> {
    let name = format!("libclang_rt.{name}-{}", std::env::consts::ARCH);
    for end in [".so", ".a"] {
        let file = format!("-print-file-name={name}{end}");
        let Ok(output) = Command::new(clang).arg(file).output() else {
            break;
        };
        let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        // clang repeats the name of a file that it does not have.
        if path.is_absolute() && path.exists() {
            return Ok(path);
        }
    }
    let version = major(clang);
    bail!(
        "{clang} has no {name}; run scripts/setup-host variants, or install Debian's package \
         libclang-rt-{version}-dev."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        assert_eq!(
            major_in("Debian clang version 19.1.7 (3~deb12u1)\nTarget: x"),
            19
        );
        assert_eq!(major_in("Debian LLVM version 14.0.6\n"), 14);
        assert_eq!(major_in("bash"), 0);
    }

    #[test]
    fn what_is_missing_is_named_with_its_package() {
        let why = tool("llvm-cov", "no-such-clang").expect_err("no such clang");
        assert!(why.to_string().contains("Debian's package llvm-0"), "{why}");
        let why = runtime("profile", "no-such-clang").expect_err("no such clang");
        assert!(why.to_string().contains("libclang-rt-0-dev"), "{why}");
    }
}
