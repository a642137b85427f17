//! The pages of the book, which are files of the repository, and the files that they link to.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{ensure, Context, Result};
use pulldown_cmark::{Event, Options, Parser, Tag};

/// The order of the pages, below the top of the repository.
pub const SUMMARY: &str = "docs/SUMMARY.md";

/// The pages of a book.
#[derive(Debug)]
pub struct Pages {
    top: PathBuf,
    /// The summary with paths from the top of the repository.
    summary: String,
    chapters: BTreeSet<String>,
    /// Files that pages link to: pictures, tables, examples.
    files: BTreeSet<String>,
}

impl Pages {
    /// Reads the summary of the repository at `top`, and the pages that it names.
    ///
    /// # Errors
    ///
    /// The summary or a page cannot be read, or a page of `docs/` is in no chapter.
    pub fn read(top: &Path) -> Result<Self> {
        let text = read(top, SUMMARY)?;
        let (summary, chapters) = from_the_top(&text);
        let mut files = BTreeSet::new();
        for page in &chapters {
            let text = read(top, page)?;
            let targets = targets(&text).into_iter().map(|to| resolve(page, &to));
            files.extend(targets.filter(|to| !to.ends_with(".md") && top.join(to).is_file()));
        }
        let pages = Self {
            top: top.to_owned(),
            summary,
            chapters,
            files,
        };
        pages.none_is_left_out()?;
        Ok(pages)
    }

    /// The paths of the pages, from the top of the repository.
    #[must_use]
    pub const fn chapters(&self) -> &BTreeSet<String> {
        &self.chapters
    }

    /// Copies the summary, the pages and the files that they link to below `folder`.
    ///
    /// # Errors
    ///
    /// A file cannot be copied.
    pub fn copy_to(&self, folder: &Path) -> Result<()> {
        for path in self.chapters.iter().chain(&self.files) {
            let to = folder.join(path);
            let parent = to.parent().unwrap_or(folder);
            fs::create_dir_all(parent)
                .and_then(|()| fs::copy(self.top.join(path), &to))
                .with_context(|| format!("cannot copy {path} to {}", to.display()))?;
        }
        let summary = folder.join("SUMMARY.md");
        fs::write(&summary, &self.summary)
            .with_context(|| format!("cannot write {}", summary.display()))
    }

    fn none_is_left_out(&self) -> Result<()> {
        let folder = self.top.join("docs");
        let entries =
            fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
        for entry in entries {
            let name = entry?.file_name();
            let page = format!("docs/{}", name.to_string_lossy());
            let is_chapter = !page.ends_with(".md") || self.chapters.contains(&page);
            ensure!(
                is_chapter || page == SUMMARY,
                "{page} is in no chapter of the book: name it in {SUMMARY}"
            );
        }
        Ok(())
    }
}

fn read(top: &Path, name: &str) -> Result<String> {
    let path = top.join(name);
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// Returns the summary with paths from the top of the repository, and these paths.
fn from_the_top(summary: &str) -> (String, BTreeSet<String>) {
    let (mut text, mut paths) = (String::new(), BTreeSet::new());
    let mut rest = summary;
    while let Some((before, after)) = rest.split_once("](") {
        let (target, behind) = after.split_once(')').unwrap_or((after, ""));
        let path = resolve(SUMMARY, target);
        text.extend([before, "](", &path, ")"]);
        paths.insert(path);
        rest = behind;
    }
    text.push_str(rest);
    (text, paths)
}

/// Returns what a page links to, without headings and addresses of other sites.
fn targets(page: &str) -> Vec<String> {
    let events = Parser::new_ext(page, Options::ENABLE_TABLES);
    let links = events.filter_map(|event| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => Some(dest_url),
        _ => None,
    });
    let files = links.map(|to| to.split('#').next().unwrap_or("").to_owned());
    files
        .filter(|to| !to.is_empty() && !to.contains(':'))
        .collect()
}

/// Returns the path from the top that the page `from` means by `to`.
pub(crate) fn resolve(from: &str, to: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in to.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_relative_to_the_folder_of_its_page() {
        for (from, to, path) in [
            ("README.md", "docs/a.md", "docs/a.md"),
            ("docs/a.md", "b.md", "docs/b.md"),
            ("docs/a.md", "../packaging/README.md", "packaging/README.md"),
            ("vm/platforms/README.md", "./../a/", "vm/a"),
        ] {
            assert_eq!(resolve(from, to), path);
        }
    }

    #[test]
    fn the_summary_names_pages_from_the_top() {
        let (text, paths) = from_the_top("[Begin](../README.md)\n\n- [A](a.md)\n- [None]()\n");
        assert_eq!(
            text,
            "[Begin](README.md)\n\n- [A](docs/a.md)\n- [None](docs)\n"
        );
        assert_eq!(
            paths.into_iter().collect::<Vec<_>>(),
            ["README.md", "docs", "docs/a.md"]
        );
    }

    #[test]
    fn links_and_pictures_are_targets_and_code_is_not() {
        let page = "[a](b.md#c) ![d](e.svg) `[f](g)` [h](https://example.org) [i](#j)\n
| k |\n|---|\n| [l](../m.csv) |\n\n```\n[n](o)\n```\n";
        assert_eq!(targets(page), ["b.md", "e.svg", "../m.csv"]);
    }
}
