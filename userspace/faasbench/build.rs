//! Links the program without position independence.

fn main() {
    // Every invocation is forked from this program. In a position-independent
    // program the dynamic loader writes to all tables with addresses at start,
    // some 90 pages with the tables of the text crates. Every fork then copies
    // these pages, and every exit frees them.
    println!("cargo::rustc-link-arg-bins=-no-pie");
    println!("cargo::rerun-if-changed=build.rs");
}
