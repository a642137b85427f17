//! Links the program without position independence.

fn main() {
    // Every invocation is forked from this program. In a position-independent
    // one the dynamic loader writes to all tables with addresses in them when
    // it starts, some 90 pages with the tables of the text crates, and every
    // fork copies, and every exit frees, what was written to.
    println!("cargo::rustc-link-arg-bins=-no-pie");
    println!("cargo::rerun-if-changed=build.rs");
}
