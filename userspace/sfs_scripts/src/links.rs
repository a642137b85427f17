//! The links of the documentation: each relative link leads to a file, each anchor to a heading,
//! and each path in backticks is a file or a folder of the repository.
//!
//! A word in backticks counts as such a path if it begins with a folder at the top of the
//! repository, or ends like a source file; the latter may be the end of a longer path. Code
//! blocks and addresses of other sites are not checked.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Endings of source files that are looked up wherever they stand.
const SOURCES: [&str; 5] = [".rs", ".c", ".h", ".md", ".toml"];

/// Checks the Markdown files of the repository at `top`. Returns how many there are, and a
/// sentence for each thing that is missing: page, line, what.
///
/// # Panics
///
/// If `git` does not list the files, or a page cannot be read.
#[must_use]
pub fn check(top: &Path) -> (usize, Vec<String>) {
    let files = files_of(top);
    let pages: Vec<Page> = files
        .iter()
        .filter(|file| file.ends_with(".md"))
        .map(|name| Page::read(top, name))
        .collect();
    let anchors = pages.iter().flat_map(Page::anchors).collect();
    let tree = Tree::new(&files, anchors);
    let missing = pages.iter().flat_map(|page| page.missing(&tree)).collect();
    (pages.len(), missing)
}

/// The files of the repository, new ones included, without ignored ones.
fn files_of(top: &Path) -> Vec<String> {
    let listed = Command::new("git")
        .args([
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "--deduplicate",
        ])
        .current_dir(top)
        .output()
        .expect("git runs");
    assert!(listed.status.success(), "{listed:?}");
    let names = String::from_utf8(listed.stdout).expect("the names are UTF-8");
    let there = names.lines().filter(|name| top.join(name).exists());
    there.map(str::to_owned).collect()
}

/// Possible targets of links and words.
struct Tree {
    /// Files and folders.
    paths: HashSet<String>,
    /// The ends of the files' paths, at a slash each.
    ends: HashSet<String>,
    /// Folders at the top.
    tops: HashSet<String>,
    /// `page#heading`.
    anchors: HashSet<String>,
}

impl Tree {
    fn new(files: &[String], anchors: HashSet<String>) -> Self {
        let mut tree = Self {
            paths: HashSet::new(),
            ends: HashSet::new(),
            tops: HashSet::new(),
            anchors,
        };
        for file in files {
            let mut end = Some(file.as_str());
            while let Some(part) = end {
                tree.ends.insert(part.to_owned());
                end = part.split_once('/').map(|(_, rest)| rest);
            }
            let mut path = file.as_str();
            tree.paths.insert(path.to_owned());
            while let Some((folder, _)) = path.rsplit_once('/') {
                tree.paths.insert(folder.to_owned());
                path = folder;
            }
            if path != file {
                tree.tops.insert(path.to_owned());
            }
        }
        tree
    }

    /// Returns true if there is such a path; a star stands for any part of a name.
    fn has(&self, path: &str) -> bool {
        let path = path.strip_suffix('/').unwrap_or(path);
        self.paths.contains(path)
            || (path.contains('*') && self.paths.iter().any(|one| matches(path, one)))
    }
}

/// Returns true if `text` matches `pattern`, in which a star stands for characters but slashes.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(rest) = text.strip_prefix(before) else {
        return false;
    };
    let end = rest.find('/').unwrap_or(rest.len());
    (0..=end).any(|at| rest.is_char_boundary(at) && matches(after, &rest[at..]))
}

/// A page, in paragraphs.
struct Page {
    name: String,
    headings: Vec<String>,
    /// Each with the number of its first line.
    paragraphs: Vec<(usize, String)>,
}

impl Page {
    fn read(top: &Path, name: &str) -> Self {
        let text = fs::read_to_string(top.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        let mut page = Self {
            name: name.to_owned(),
            headings: Vec::new(),
            paragraphs: Vec::new(),
        };
        let (mut in_code, mut begins_anew) = (false, true);
        for (line, number) in text.lines().zip(1..) {
            let is_fence = line.trim_start_matches(' ').starts_with("```");
            in_code ^= is_fence;
            if is_fence || in_code || line.trim().is_empty() {
                begins_anew = true;
                continue;
            }
            if line.trim_start_matches('#').starts_with(' ') && line.starts_with('#') {
                page.headings.push(line.to_owned());
            }
            if begins_anew || line.starts_with(['#', '|', '-']) {
                page.paragraphs.push((number, String::new()));
                begins_anew = false;
            }
            let (_, paragraph) = page.paragraphs.last_mut().expect("it has begun");
            paragraph.push(' ');
            paragraph.push_str(line);
        }
        page
    }

    /// `page#heading` for each heading; equal ones are numbered.
    fn anchors(&self) -> Vec<String> {
        let mut seen = HashMap::new();
        let number = |heading: &String| {
            let name = format!("{}#{}", self.name, anchor(heading));
            let before = seen.entry(name.clone()).or_insert(0);
            *before += 1;
            match *before {
                1 => name,
                again => format!("{name}-{}", again - 1),
            }
        };
        self.headings.iter().map(number).collect()
    }

    fn missing(&self, tree: &Tree) -> Vec<String> {
        let mut missing = Vec::new();
        for (begins, text) in &self.paragraphs {
            let (words, text) = split_code(text);
            let words = words.iter().filter(|word| !self.names(tree, word));
            let links = text.split("](").skip(1);
            let links = links
                .filter_map(|link| link.split_once(')'))
                .map(|(to, _)| to);
            let wrong = words
                .map(|word| format!("no path `{word}`"))
                .chain(links.filter_map(|to| self.broken(tree, to)));
            missing.extend(wrong.map(|what| format!("{}:{begins}: {what}", self.name)));
        }
        missing
    }

    /// Returns what is missing where a link leads `to`.
    fn broken(&self, tree: &Tree, to: &str) -> Option<String> {
        let scheme = to.split_once(':').map_or("", |(scheme, _)| scheme);
        if !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_lowercase()) {
            return None;
        }
        let (file, heading) = to
            .split_once('#')
            .map_or((to, None), |(file, heading)| (file, Some(heading)));
        let file = match file {
            "" => self.name.clone(),
            _ => self.resolve(file),
        };
        if !file.is_empty() && !tree.paths.contains(&file) {
            return Some(format!("no file {to}"));
        }
        let heading = heading?;
        (!tree.anchors.contains(&format!("{file}#{heading}"))).then(|| format!("no heading {to}"))
    }

    /// Returns `path`, which is relative to the page's folder, from the top of the repository.
    fn resolve(&self, path: &str) -> String {
        let mut parts: Vec<&str> = self.name.split('/').collect();
        parts.pop();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." => drop(parts.pop()),
                _ => parts.push(part),
            }
        }
        parts.join("/")
    }

    /// Returns false if `word` looks like a path of the repository and names none.
    fn names(&self, tree: &Tree, word: &str) -> bool {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_./*-".contains(&byte);
        let is_built = word == "userspace/target" || word.starts_with("userspace/target/");
        // An absolute path is one of a machine.
        let is_of_machine = word.starts_with('/');
        if is_built || is_of_machine || !word.bytes().all(plain) {
            return true;
        }
        if let Some((top, _)) = word.split_once('/') {
            if tree.tops.contains(top) {
                return tree.has(word);
            }
        }
        let is_source = SOURCES.iter().any(|end| {
            let name = word.strip_suffix(end).unwrap_or("");
            name.ends_with(|last: char| last.is_ascii_lowercase() || last == '_')
        });
        if !is_source {
            return true;
        }
        if word.starts_with("./") || word.starts_with("../") {
            return tree.paths.contains(&self.resolve(word));
        }
        tree.ends.contains(word)
    }
}

/// Returns the anchor that a heading has on a rendered page, or that it names itself.
fn anchor(heading: &str) -> String {
    let heading = heading.trim_start_matches('#').trim();
    if let Some((_, named)) = heading.strip_suffix('}').and_then(|h| h.rsplit_once("{#")) {
        return named.to_owned();
    }
    let kept = |char: &char| char.is_ascii_alphanumeric() || " _-".contains(*char);
    let lower = heading.to_ascii_lowercase();
    lower
        .chars()
        .filter(kept)
        .collect::<String>()
        .replace(' ', "-")
}

/// Returns the words in single backticks, and the text without them. What is in double backticks
/// is left out.
fn split_code(text: &str) -> (Vec<&str>, String) {
    let (mut words, mut rest) = (Vec::new(), String::new());
    let mut left = text;
    while let Some(at) = left.find('`') {
        rest.push_str(&left[..at]);
        let ticks = left[at..].len() - left[at..].trim_start_matches('`').len();
        let fence = &left[at..at + ticks];
        let inside = &left[at + ticks..];
        let end = inside.find(fence).unwrap_or(inside.len());
        if ticks == 1 {
            let between = |char: char| " \t\"'(),=".contains(char);
            words.extend(inside[..end].split(between).filter(|word| !word.is_empty()));
        }
        left = &inside[(end + ticks).min(inside.len())..];
    }
    rest.push_str(left);
    (words, rest)
}
