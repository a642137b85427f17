//! Comparison of two builds of the same sources, to the byte.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

/// The compared programs of `make build`.
pub const OF_BUILD: [&str; 5] = [
    "scx_sfs",
    "faasbench",
    "sfs_behaviour",
    "sfs_waste",
    "sfs_advise",
];
/// The compared programs of `make demo`, which builds only its own.
pub const OF_DEMO: [&str; 3] = ["scx_sfs", "faasbench", "sfs_waste"];
/// The packages whose BPF objects are compared.
const WITH_BPF: [&str; 2] = ["sfs_bpf", "sfs_waste"];

/// A file of a build that is compared.
struct Part {
    /// Its name in messages.
    name: String,
    path: PathBuf,
}

/// Returns one sentence for each of these programs and for each BPF object that differs between
/// the builds in these folders (cargo's `target/release`), or is missing in one of them.
pub fn differences(programs: &[&str], one: &Path, other: &Path) -> Vec<String> {
    let pairs = parts(programs, one).into_iter().zip(parts(programs, other));
    pairs
        .filter_map(|(one, other)| difference(&one, &other))
        .collect()
}

/// Returns a line for each program and BPF object of `make build`: the checksum and the name,
/// as `sha256sum` writes them.
///
/// # Errors
///
/// One of them cannot be read.
pub fn checksums(release: &Path) -> Result<Vec<String>> {
    let lines = parts(&OF_BUILD, release).into_iter().map(|part| {
        let bytes =
            fs::read(&part.path).with_context(|| format!("cannot read {}", part.path.display()))?;
        let sum = Sha256::digest(&bytes);
        let sum: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(format!("{sum}  {}", part.name))
    });
    lines.collect()
}

/// Returns the compared files of a build; one that was not built has a path that does not exist.
fn parts(programs: &[&str], release: &Path) -> Vec<Part> {
    let programs = programs.iter().map(|name| Part {
        name: (*name).to_owned(),
        path: release.join(name),
    });
    let objects = WITH_BPF.iter().map(|package| Part {
        name: format!("{package}, BPF object"),
        path: bpf_object(release, package),
    });
    programs.chain(objects).collect()
}

/// Returns the path of a package's BPF object: the newest, since cargo keeps those of earlier
/// builds.
pub fn bpf_object(release: &Path, package: &str) -> PathBuf {
    let build = release.join("build");
    let prefix = format!("{package}-");
    let folders = fs::read_dir(&build).into_iter().flatten().flatten();
    let objects = folders
        .filter(|folder| folder.file_name().to_string_lossy().starts_with(&prefix))
        .map(|folder| folder.path().join("out/bpf.bpf.o"));
    let newest = objects
        .filter_map(|path| Some((modified(&path)?, path)))
        .max();
    newest.map_or_else(
        || build.join(format!("{prefix}*/out/bpf.bpf.o")),
        |(_, path)| path,
    )
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|found| found.modified()).ok()
}

fn difference(one: &Part, other: &Part) -> Option<String> {
    let mut read = Vec::new();
    for path in [&one.path, &other.path] {
        match fs::read(path) {
            Ok(bytes) => read.push(bytes),
            Err(error) => return Some(format!("cannot read {}: {error}", path.display())),
        }
    }
    let [a, b] = &read[..] else { return None };
    if a == b {
        return None;
    }
    let byte = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    Some(format!(
        "{} differs from byte {} on: {} of {} bytes, {} of {} bytes",
        one.name,
        byte + 1,
        one.path.display(),
        a.len(),
        other.path.display(),
        b.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::time::Duration;
    use tempfile::{tempdir, TempDir};

    const OBJECTS: [&str; 2] = [
        "build/sfs_bpf-1a/out/bpf.bpf.o",
        "build/sfs_waste-2b/out/bpf.bpf.o",
    ];

    /// A build in which each file has its own name as its text.
    fn build() -> TempDir {
        let folder = tempdir().unwrap();
        for file in OF_BUILD.iter().chain(&OBJECTS) {
            write(&folder, file, file);
        }
        folder
    }

    fn write(build: &TempDir, file: &str, text: &str) {
        let path = build.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn compare(one: &TempDir, other: &TempDir) -> Vec<String> {
        differences(&OF_BUILD, one.path(), other.path())
    }

    #[test]
    fn equal_builds_have_no_differences() {
        assert_eq!(compare(&build(), &build()), Vec::<String>::new());
    }

    #[test]
    fn each_part_that_differs_is_named_with_its_first_byte() {
        for (file, name) in OF_BUILD.iter().zip(OF_BUILD).chain(
            OBJECTS
                .iter()
                .zip(["sfs_bpf, BPF object", "sfs_waste, BPF object"]),
        ) {
            let (one, other) = (build(), build());
            write(&other, file, &format!("{file}+"));
            let found = compare(&one, &other);
            assert_eq!(found.len(), 1, "{found:?}");
            let want = format!("{name} differs from byte {} on: ", file.len() + 1);
            assert!(found[0].starts_with(&want), "{found:?}");
            assert_eq!(compare(&other, &one).len(), 1);
        }
    }

    #[test]
    fn what_one_build_lacks_is_a_difference() {
        let (one, other) = (build(), build());
        fs::remove_file(other.path().join("faasbench")).unwrap();
        fs::remove_dir_all(other.path().join("build/sfs_bpf-1a")).unwrap();
        let found = compare(&one, &other);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("/faasbench: "), "{found:?}");
        assert!(found[1].contains("/sfs_bpf-*/out/bpf.bpf.o: "), "{found:?}");
        let nothing = tempdir().unwrap();
        assert_eq!(compare(&nothing, &nothing).len(), 7);
        checksums(&nothing.path().join("none")).unwrap_err();
    }

    #[test]
    fn what_the_demo_does_not_build_is_not_compared() {
        let (one, other) = (build(), build());
        fs::remove_file(other.path().join("sfs_behaviour")).unwrap();
        let found = differences(&OF_DEMO, one.path(), other.path());
        assert_eq!(found, Vec::<String>::new());
        fs::remove_file(other.path().join("sfs_waste")).unwrap();
        let found = differences(&OF_DEMO, one.path(), other.path());
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn the_newest_object_counts() {
        let (one, other) = (build(), build());
        write(&other, "build/sfs_bpf-00/out/bpf.bpf.o", "another");
        write(
            &other,
            "build/sfs_bpf_more-9/out/bpf.bpf.o",
            "of another package",
        );
        let newer = SystemTime::now() + Duration::from_secs(60);
        let touch = |file: &str| {
            let file = File::options().write(true).open(other.path().join(file));
            file.unwrap().set_modified(newer).unwrap();
        };
        touch("build/sfs_bpf_more-9/out/bpf.bpf.o");
        touch(OBJECTS[0]);
        assert_eq!(compare(&one, &other), Vec::<String>::new());
        touch("build/sfs_bpf-00/out/bpf.bpf.o");
        let old = SystemTime::now() - Duration::from_secs(60);
        let object = File::options()
            .write(true)
            .open(other.path().join(OBJECTS[0]));
        object.unwrap().set_modified(old).unwrap();
        assert_eq!(compare(&one, &other).len(), 1);
    }

    #[test]
    fn checksums_are_those_of_sha256sum() {
        let build = build();
        write(&build, "scx_sfs", "abc");
        let lines = checksums(build.path()).unwrap();
        assert_eq!(
            lines[0],
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  scx_sfs"
        );
        assert!(lines[6].ends_with("  sfs_waste, BPF object"), "{lines:?}");
        assert_eq!(lines.len(), 7);
    }
}
