//! A row that compiles the files of a C library that need no configuration, as many at a time
//! as there are CPUs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{ensure, Context, Result};
use sfs_testbed::clock::{now, since};

use super::root::ROOT;
use crate::programs::succeeds;

/// Folders of such files, below the library's.
const SOURCES: [&str; 3] = [
    "newlib/libc/string",
    "newlib/libc/stdlib",
    "newlib/libm/math",
];

/// Folders of headers, below the library's.
const HEADERS: [&str; 4] = [
    "newlib/libc/include",
    "newlib/libc/locale",
    "newlib/libc/stdlib",
    "newlib/libm/common",
];

/// The compiler's own headers.
const OWN_HEADERS: &str = "-I/usr/lib/x86_64-linux-gnu/tcc/include";

/// Returns the files compiled per second.
pub fn compile(jobs: usize) -> Result<String> {
    let library = library().context("there is no C library")?;
    let files = sources(&library);
    let next = AtomicUsize::new(0);
    let began = now();
    let compiled: usize = thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs)
            .map(|worker| {
                scope.spawn({
                    let (library, files, next) = (&library, &files, &next);
                    move || {
                        let mut compiled = 0;
                        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                            compiled += usize::from(compile_file(library, file, worker));
                        }
                        compiled
                    }
                })
            })
            .collect();
        let counts = workers.into_iter().map(|worker| worker.join().unwrap_or(0));
        counts.sum()
    });
    ensure!(compiled > 0, "nothing could be compiled");
    let seconds = since(began).as_secs_f64();
    Ok(format!("{:.2} ops/s", compiled as f64 / seconds))
}

/// The library's folder, as seen in [`ROOT`].
fn library() -> Option<PathBuf> {
    let above = Path::new("usr/src/newlib");
    let entries = fs::read_dir(Path::new(ROOT).join(above)).ok()?;
    let mut names = entries.flatten().map(|entry| entry.file_name());
    let name = names.find(|name| name.to_string_lossy().starts_with("newlib-"))?;
    Some(Path::new("/").join(above).join(name))
}

/// The files, below the library's folder, in order.
fn sources(library: &Path) -> Vec<PathBuf> {
    let here = Path::new(ROOT).join(library.strip_prefix("/").unwrap_or(library));
    let mut files = Vec::new();
    for folder in SOURCES {
        let entries = fs::read_dir(here.join(folder)).into_iter().flatten();
        let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
        names.retain(|name| name.to_string_lossy().ends_with(".c"));
        names.sort();
        files.extend(names.iter().map(|name| Path::new(folder).join(name)));
    }
    files
}

/// Compiles a file; returns whether that succeeded. As in a build by make, a shell waits for
/// the compiler.
fn compile_file(library: &Path, file: &Path, worker: usize) -> bool {
    let mut command = Command::new("sh");
    command
        .args(["-c", "\"$0\" \"$@\" && exit", "chroot", ROOT])
        .args(["/usr/bin/tcc", "-nostdinc", OWN_HEADERS]);
    for headers in HEADERS {
        command.arg(format!("-I{}", library.join(headers).display()));
    }
    command.args(["-c", "-o", &format!("/tmp/object-{worker}")]);
    succeeds(command.arg(library.join(file)))
}
