//! The stand-in for vm/run, an example program of this crate.

use std::fs::create_dir_all;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Puts it into a tree.
pub fn put(tree: &Path) {
    let programs = Path::new(env!("CARGO_BIN_EXE_sfs_lab")).parent().unwrap();
    let program = programs.join("examples/stand_in_vm_run");
    assert!(
        program.exists(),
        "{} is not built: cargo test builds it, but for single tests only with --examples",
        program.display()
    );
    create_dir_all(tree.join("vm")).unwrap();
    symlink(program, tree.join("vm/run")).unwrap();
}
