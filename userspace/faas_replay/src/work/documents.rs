//! md and sa of the SFS paper (SC'22, Section IX): functions that read a file of
//! their local storage each time.
//!
//! md reads a JSON file and turns it into Markdown. sa reads a dictionary of
//! sentiments and scores a sentence with it. The files are in the current
//! folder, which is a private one in a replay; [`Documents::prepare`] writes
//! them. Before it reads, a function asks the kernel to drop the file from the
//! page cache, so that it waits for the disk if the file system has one.

use nix::errno::Errno;
use nix::fcntl::{posix_fadvise, PosixFadviseAdvice};
use serde_json::Value;
use std::collections::HashMap;
use std::fs::{self, File};
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::path::PathBuf;

const ORDERS: &str = include_str!("texts/orders.jsonl");
const DICTIONARY: &str = include_str!("texts/dictionary.txt");
const REVIEWS: &str = include_str!("texts/reviews.txt");

/// Words that turn the sentiment of the next word around.
const NEGATIONS: [&str; 4] = ["not", "no", "never", "without"];

/// The files of md and sa.
///
/// It is kept small, since processes are forked with it on their stack.
#[derive(Debug, Default)]
pub struct Documents {
    /// Their folder; empty for the current one.
    folder: PathBuf,
    /// The next sentence.
    next: usize,
}

impl Documents {
    /// Writes the files that are missing.
    ///
    /// # Errors
    /// If the folder cannot be written or is full.
    pub fn prepare(&self) -> Result<(), Errno> {
        self.write("faasbench-md.json", json().as_bytes())?;
        self.write("faasbench-sa.txt", DICTIONARY.as_bytes())
    }

    /// Reads the JSON file and makes Markdown of it, `count` times.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn md(&self, count: u64) -> Result<(), Errno> {
        for _ in 0..count {
            let text = self.read("faasbench-md.json")?;
            black_box(to_markdown(&text).ok_or(Errno::EINVAL)?);
        }
        Ok(())
    }

    /// Reads the dictionary and scores the next sentence, `count` times.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn sa(&mut self, count: u64) -> Result<(), Errno> {
        for _ in 0..count {
            let text = self.read("faasbench-sa.txt")?;
            let dictionary = dictionary(&text);
            let sentence = REVIEWS.lines().nth(self.next).unwrap_or_default();
            black_box(score(&dictionary, sentence));
            self.next = (self.next + 1) % REVIEWS.lines().count();
        }
        Ok(())
    }

    /// Reads a file, from the disk if there is one.
    fn read(&self, name: &str) -> Result<String, Errno> {
        let mut file = File::open(self.folder.join(name)).map_err(errno)?;
        // Only advice: a file system may keep the file.
        let _ = posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED);
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(errno)?;
        Ok(text)
    }

    /// Writes a file, unless it is there. Another process may do the same.
    fn write(&self, name: &str, content: &[u8]) -> Result<(), Errno> {
        let path = self.folder.join(name);
        if path.exists() {
            return Ok(());
        }
        let fresh = self.folder.join(format!("{name}-{}", std::process::id()));
        let written = File::create(&fresh).and_then(|mut file| {
            file.write_all(content)?;
            // Only a page that is on the disk can be dropped.
            file.sync_all()
        });
        written
            .and_then(|()| fs::rename(&fresh, &path))
            .map_err(errno)
    }
}

/// The orders as one JSON list.
fn json() -> String {
    let orders: Vec<&str> = ORDERS.lines().filter(|line| !line.is_empty()).collect();
    format!("[{}]\n", orders.join(",\n"))
}

/// A list of objects as Markdown: a section for each, with lists for what is
/// nested.
fn to_markdown(text: &str) -> Option<String> {
    let all: Value = serde_json::from_str(text).ok()?;
    let mut markdown = String::with_capacity(text.len());
    for (index, one) in all.as_array()?.iter().enumerate() {
        markdown += &format!("## {}\n\n", index + 1);
        add(&mut markdown, one, 0);
        markdown += "\n";
    }
    Some(markdown)
}

/// Adds a value as list items, indented by `depth`.
fn add(markdown: &mut String, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                *markdown += &format!("{indent}- **{name}**");
                item(markdown, value, depth);
            }
        }
        Value::Array(values) => {
            for value in values {
                *markdown += &format!("{indent}-");
                item(markdown, value, depth);
            }
        }
        _ => {}
    }
}

/// Ends an item with its value, or with a list below it.
fn item(markdown: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(_) | Value::Array(_) => {
            *markdown += "\n";
            add(markdown, value, depth + 1);
        }
        Value::String(text) => *markdown += &format!(" {text}\n"),
        plain => *markdown += &format!(" `{plain}`\n"),
    }
}

/// The words of a dictionary, `word score` in each line, `#` for comments.
fn dictionary(text: &str) -> HashMap<&str, f64> {
    let words = text.lines().filter(|line| !line.starts_with('#'));
    words
        .filter_map(|line| {
            let (word, score) = line.split_once(' ')?;
            Some((word, score.trim().parse().ok()?))
        })
        .collect()
}

/// The sum of a sentence's words; a negation turns the next word that has a
/// score around.
fn score(dictionary: &HashMap<&str, f64>, sentence: &str) -> f64 {
    let lower = sentence.to_lowercase();
    let words = lower.split(|letter: char| !letter.is_alphabetic());
    let mut sign = 1.0;
    let mut sum = 0.0;
    for word in words {
        if NEGATIONS.contains(&word) {
            sign = -sign;
        } else if let Some(score) = dictionary.get(word) {
            sum += sign * score;
            sign = 1.0;
        }
    }
    sum
}

fn errno(error: io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_written_once_and_read_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let mut documents = Documents {
            folder: folder.path().to_path_buf(),
            next: 0,
        };
        assert_eq!(documents.md(1), Err(Errno::ENOENT));
        assert_eq!(documents.sa(1), Err(Errno::ENOENT));
        documents.prepare().unwrap();
        documents.prepare().unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        documents.md(2).unwrap();
        documents.sa(30).unwrap();
        assert_eq!(documents.next, 30 % 24);
        fs::write(folder.path().join("faasbench-md.json"), "{}").unwrap();
        assert_eq!(documents.md(1), Err(Errno::EINVAL));
    }

    #[test]
    fn orders_become_sections_and_lists() {
        let made = to_markdown(&json()).unwrap();
        let orders = ORDERS.lines().count();
        assert!(orders >= 8);
        assert_eq!(made.matches("\n## ").count() + 1, orders);
        let small = to_markdown(r#"[{"a":"x","b":[1,{"c":null}]}]"#).unwrap();
        assert_eq!(
            small,
            "## 1\n\n- **a** x\n- **b**\n  - `1`\n  -\n    - **c** `null`\n\n"
        );
    }

    #[test]
    fn praise_and_complaint_are_distinguished() {
        let dictionary = dictionary(DICTIONARY);
        assert!(dictionary.len() >= 150, "{}", dictionary.len());
        let scores: Vec<f64> = REVIEWS
            .lines()
            .map(|review| score(&dictionary, review))
            .collect();
        assert!(scores.iter().any(|score| *score > 3.0), "{scores:?}");
        assert!(scores.iter().any(|score| *score < -3.0), "{scores:?}");
        assert_eq!(score(&dictionary, "It is not good."), -dictionary["good"]);
        assert_eq!(score(&dictionary, "Never without joy"), dictionary["joy"]);
    }
}
