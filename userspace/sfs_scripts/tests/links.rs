//! The documentation's links, and what finds those that lead nowhere.

use sfs_scripts::{links, top, Place};
use sfs_skip::skip;
use std::process::Command;

/// A repository with this page in `docs/page.md`.
fn missing(page: &str) -> Vec<String> {
    let place = Place::new();
    let status = Command::new("git")
        .args(["init", "--quiet"])
        .current_dir(place.path("."))
        .status();
    assert!(status.unwrap().success());
    place.write("scripts/audit", "");
    place.write(
        "docs/other.md",
        "# First\n\n## Two words, `three`\n\n## Named {#one}\n\n## First\n",
    );
    place.write("docs/page.md", page);
    let (pages, missing) = links::check(&place.path("."));
    assert_eq!(pages, 2);
    missing
}

#[test]
fn the_documentation_leads_somewhere() {
    if !top().join(".git").exists() {
        skip!("the sources are not a Git repository");
    }
    let (pages, missing) = links::check(&top());
    assert!(pages > 10, "{pages} pages");
    assert!(missing.is_empty(), "\n{}", missing.join("\n"));
}

#[test]
fn what_is_there_is_found() {
    let page = "# Here\n\n[a](other.md) and [b](other.md#two-words-three), [c](#here),
[d](other.md#one) and [e](other.md#first-1)\n
A `scripts/audit --help`, `docs/*.md`, `other.md`, `../docs/other.md`, `any/thing`, `out.csv`\n
| `scripts/` | [f](../docs/) | [g](https://example.org/no/such) | ``a `gone.rs` b`` |\n
```\n[h](gone.md) `scripts/gone`\n```\n";
    assert_eq!(missing(page), Vec::<String>::new());
}

#[test]
fn what_leads_nowhere_is_named_with_its_line() {
    for (line, what) in [
        ("A [link](gone.md) that leads nowhere", "no file gone.md"),
        ("![b](other.md#third)", "no heading other.md#third"),
        ("[c](#there)", "no heading #there"),
        ("Run `scripts/gone --now`", "no path `scripts/gone`"),
        ("- see `gone.rs`", "no path `gone.rs`"),
        ("All of `docs/*.txt`", "no path `docs/*.txt`"),
    ] {
        let found = missing(&format!("# Here\n\n{line}\n"));
        assert_eq!(found, [format!("docs/page.md:3: {what}")]);
    }
}
