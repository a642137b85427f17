//! The book of this repository: it is built, and its links lead somewhere. `make lint` runs it,
//! with the other checks of links, and so does `make test-unit`.

use std::path::Path;

use sfs_book::{book, links};

#[test]
fn every_link_of_the_book_leads_somewhere() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let out = tempfile::tempdir().expect("a folder");
    let chapters = book::build(&top, out.path()).unwrap_or_else(|error| panic!("{error:#}"));
    assert!(chapters > 30, "{chapters} chapters");
    let found = links::check(out.path()).unwrap_or_else(|error| panic!("{error:#}"));
    assert!(found.links > 1000, "{} links", found.links);
    let broken: Vec<String> = found.broken.iter().map(ToString::to_string).collect();
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

#[test]
fn a_page_without_a_chapter_is_named() {
    let top = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = top.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("it is made");
        std::fs::write(path, text).expect("it is written");
    };
    write(
        "docs/book.toml",
        "[build]\nuse-default-preprocessors = false\n[output.html.print]\nenable = false\n",
    );
    write(
        "docs/SUMMARY.md",
        "[A](../README.md)\n\n- [B](../b/README.md)\n",
    );
    write(
        "README.md",
        "# A\n\n[b](b/README.md#b) [c](docs/c.csv) [d](docs/d.md)\n",
    );
    write("docs/c.csv", "1,2\n");
    write("b/README.md", "# B\n\n[a](../README.md#a)\n");
    let out = top.path().join("out");
    assert_eq!(book::build(top.path(), &out).expect("a book"), 2);
    let found = links::check(&out).expect("pages");
    let broken: Vec<&str> = found.broken.iter().map(|one| one.link.as_str()).collect();
    assert_eq!(broken, ["docs/d.html", "docs/d.html"]);

    write("docs/d.md", "# D\n");
    let error = book::build(top.path(), &out).expect_err("d is left out");
    let sentence = "docs/d.md is in no chapter of the book: name it in docs/SUMMARY.md";
    assert_eq!(error.to_string(), sentence);
}
