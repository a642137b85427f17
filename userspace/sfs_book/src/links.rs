//! The links of a book: each leads to a file of it, and each fragment to an element.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{ensure, Context, Result};
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{
    BufferQueue, Tag, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};

use crate::pages::resolve;

/// What a check has found.
#[derive(Debug)]
pub struct Found {
    /// Number of links to places in the book.
    pub links: usize,
    /// Those that lead nowhere.
    pub broken: Vec<Broken>,
}

/// A link that leads nowhere.
#[derive(Debug, PartialEq, Eq)]
pub struct Broken {
    /// The page that has it.
    pub page: String,
    /// The link as it stands there.
    pub link: String,
    /// What is missing.
    pub missing: &'static str,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            page,
            link,
            missing,
        } = self;
        write!(f, "{page} links to {link}, but the book has no such {missing}: correct the link, or add what it means")
    }
}

/// What a page offers, and where it leads.
#[derive(Debug, Default)]
struct Page {
    ids: RefCell<HashSet<String>>,
    links: RefCell<Vec<String>>,
}

/// Checks the links of all pages of the book in `folder`. Links to other sites are left alone.
///
/// # Errors
///
/// A file cannot be read, or there is no page.
pub fn check(folder: &Path) -> Result<Found> {
    let mut pages = BTreeMap::new();
    for path in files(folder)? {
        let name = path.strip_prefix(folder).unwrap_or(&path);
        let name = name.to_string_lossy().into_owned();
        if name.ends_with(".html") {
            let text = fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            pages.insert(name, Page::parse(&text));
        }
    }
    ensure!(!pages.is_empty(), "{} has no page", folder.display());
    let mut found = Found {
        links: 0,
        broken: Vec::new(),
    };
    for (name, page) in &pages {
        for link in page.links.borrow().iter().filter(|link| is_local(link)) {
            found.links += 1;
            if let Some(missing) = missing(folder, &pages, name, link) {
                let (page, link) = (name.clone(), link.clone());
                found.broken.push(Broken {
                    page,
                    link,
                    missing,
                });
            }
        }
    }
    Ok(found)
}

/// The files below `folder`.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.push(path);
        }
    }
    Ok(found)
}

/// Returns false for what begins with a scheme, such as `https:`, or with a host.
fn is_local(link: &str) -> bool {
    let scheme = link.split_once(':').map_or("", |(scheme, _)| scheme);
    let has_scheme = !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphabetic());
    !has_scheme && !link.starts_with("//")
}

/// Returns what of a link of the page `from` is missing in the book, if anything.
fn missing(
    folder: &Path,
    pages: &BTreeMap<String, Page>,
    from: &str,
    link: &str,
) -> Option<&'static str> {
    let (file, fragment) = link
        .split_once('#')
        .map_or((link, ""), |(file, fragment)| (file, fragment));
    let file = file.split('?').next().unwrap_or("");
    let target = match file {
        "" => from.to_owned(),
        _ => resolve(from, file),
    };
    if !folder.join(&target).is_file() {
        return Some("file");
    }
    let has = |page: &Page| page.ids.borrow().contains(fragment);
    let is_there = fragment.is_empty() || pages.get(&target).is_none_or(has);
    (!is_there).then_some("heading")
}

impl Page {
    fn parse(text: &str) -> Self {
        let tokenizer = Tokenizer::new(Self::default(), TokenizerOpts::default());
        let input = BufferQueue::default();
        input.push_back(StrTendril::from_slice(text));
        // It pauses behind each script.
        while !input.is_empty() {
            let _ = tokenizer.feed(&input);
        }
        tokenizer.end();
        tokenizer.sink
    }

    fn note(&self, tag: &Tag) {
        let is_base = &*tag.name == "base";
        for attribute in &tag.attrs {
            let value = attribute.value.to_string();
            match &*attribute.name.local {
                "id" => drop(self.ids.borrow_mut().insert(value)),
                "href" | "src" if !is_base => self.links.borrow_mut().push(value),
                _ => {}
            }
        }
    }
}

impl TokenSink for Page {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        if let Token::TagToken(tag) = token {
            self.note(&tag);
        }
        TokenSinkResult::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is broken in a book of these files.
    fn broken(files: &[(&str, &str)]) -> Vec<Broken> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        check(folder.path()).unwrap().broken
    }

    #[test]
    fn links_between_pages_are_followed() {
        let first = "<h1 id=\"a\">A</h1> <a href='docs/b.html#c'>b</a> <a href=\"#a\">a</a>
            <img src=\"docs/d.svg\"> <a href=\"https://example.org/no\">e</a>
            <!-- <a href=\"gone.html\">f</a> -->";
        let second =
            "<h2 id=\"c\">C</h2> <a href=\"../index.html#a\">a</a> <a href=\"d.svg\">d</a>";
        let files = [
            ("index.html", first),
            ("docs/b.html", second),
            ("docs/d.svg", ""),
        ];
        assert_eq!(broken(&files), []);
    }

    #[test]
    fn what_leads_nowhere_is_named() {
        for (link, missing) in [
            ("gone.html", "file"),
            ("docs/index.html", "file"),
            ("#gone", "heading"),
            ("index.html#gone", "heading"),
            ("docs", "file"),
        ] {
            let page = format!("<h1 id=\"a\">A</h1> <a href=\"{link}\">b</a>");
            let files = [("index.html", page.as_str()), ("docs/c.svg", "")];
            let expected = Broken {
                page: "index.html".to_owned(),
                link: link.to_owned(),
                missing,
            };
            assert_eq!(broken(&files), [expected]);
        }
    }

    #[test]
    fn a_folder_without_pages_is_no_book() {
        let folder = tempfile::tempdir().unwrap();
        let error = check(folder.path()).unwrap_err();
        assert!(error.to_string().ends_with("has no page"), "{error}");
    }
}
