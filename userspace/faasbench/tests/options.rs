//! The page of all options of faasbench, which is made from their definition.

use std::path::Path;

use faasbench::cli::Cli;

const BEFORE: &str = "\
Every command of `faasbench` with every option, its default and its range. The help (`--help`) and
this page are made of one definition. [Workloads](workloads.md) tells what to choose.";

/// The page in the repository is what this test writes with WRITE=1.
#[test]
fn the_page_of_options_is_up_to_date() {
    let test = "userspace/faasbench/tests/options.rs";
    let title = "Options of faasbench";
    let made = sfs_generate::markdown::page(&Cli::command(), title, BEFORE, test);
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/faasbench-options.md");
    let command = "cargo test --release -p faasbench --test options";
    sfs_generate::markdown::keep(&page, &made, command).unwrap();
    assert!(made.contains("\n## faasbench gen table1\n"), "{made}");
}
