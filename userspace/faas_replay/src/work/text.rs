//! Common work of real functions: JSON, Markdown and English text, by widely used
//! Rust crates, on built-in texts.

use pulldown_cmark::{html, Options, Parser};
use serde_json::Value;
use std::hint::black_box;
use vader_sentimental::SentimentIntensityAnalyzer;

const ORDERS: &str = include_str!("texts/orders.jsonl");
const GUIDE: &str = include_str!("texts/guide.md");
const REVIEWS: &str = include_str!("texts/reviews.txt");

/// The pieces of a text, repeated in order.
#[derive(Debug)]
struct Pieces {
    all: Vec<&'static str>,
    next: usize,
}

impl Pieces {
    fn new(text: &'static str, separator: &str) -> Self {
        let pieces = text.split(separator).filter(|piece| !piece.is_empty());
        Self {
            all: pieces.collect(),
            next: 0,
        }
    }

    fn next(&mut self) -> &'static str {
        let piece = self.all[self.next];
        self.next = (self.next + 1) % self.all.len();
        piece
    }
}

/// Parses orders, sums their totals and writes them again.
#[derive(Debug)]
pub struct Json(Pieces);

impl Default for Json {
    fn default() -> Self {
        Self(Pieces::new(ORDERS, "\n"))
    }
}

impl Json {
    /// Processes the next `count` orders.
    pub fn render(&mut self, count: u64) {
        for _ in 0..count {
            black_box(with_total(self.0.next()));
        }
    }
}

/// An order with the field `total_cents` added: the sum of its lines.
fn with_total(order: &str) -> Option<String> {
    let mut order: Value = serde_json::from_str(order).ok()?;
    let lines = order.get("lines")?.as_array()?;
    let cents = |line: &Value| Some(line.get("count")?.as_u64()? * line.get("cents")?.as_u64()?);
    let total: u64 = lines.iter().filter_map(cents).sum();
    order
        .as_object_mut()?
        .insert("total_cents".to_string(), total.into());
    serde_json::to_string(&order).ok()
}

/// Renders the sections of a guide to HTML.
#[derive(Debug)]
pub struct Markdown(Pieces);

impl Default for Markdown {
    fn default() -> Self {
        Self(Pieces::new(GUIDE, "\n\n---\n\n"))
    }
}

impl Markdown {
    /// Renders the next `count` sections.
    pub fn render(&mut self, count: u64) {
        for _ in 0..count {
            black_box(to_html(self.0.next()));
        }
    }
}

fn to_html(section: &str) -> String {
    let mut text = String::with_capacity(section.len() * 2);
    html::push_html(&mut text, Parser::new_ext(section, Options::all()));
    text
}

/// Scores the sentiment of reviews by VADER (Hutto and Gilbert, ICWSM 2014).
#[derive(Debug)]
pub struct Sentiment {
    reviews: Pieces,
    analyzer: SentimentIntensityAnalyzer<'static>,
}

impl Default for Sentiment {
    fn default() -> Self {
        let mut new = Self {
            reviews: Pieces::new(REVIEWS, "\n"),
            analyzer: SentimentIntensityAnalyzer::new(),
        };
        // All word lists are read now, so that forked processes share them.
        new.score(new.reviews.all.len() as u64);
        new
    }
}

impl Sentiment {
    /// Scores the next `count` sentences.
    pub fn score(&mut self, count: u64) {
        for _ in 0..count {
            black_box(self.analyzer.polarity_scores(self.reviews.next()).compound);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_gets_its_total() {
        let orders = Json::default().0.all;
        assert!(orders.len() >= 8);
        for order in orders {
            let order: Value = serde_json::from_str(&with_total(order).unwrap()).unwrap();
            assert!(order["total_cents"].as_u64().unwrap() > 0, "{order}");
        }
        let two = r#"{"lines":[{"count":2,"cents":150},{"count":1,"cents":5}]}"#;
        assert!(with_total(two).unwrap().contains("\"total_cents\":305"));
    }

    #[test]
    fn every_section_becomes_html() {
        let sections = Markdown::default().0.all;
        assert!(sections.len() >= 6);
        for section in sections {
            assert!(to_html(section).starts_with("<h2"), "{section}");
        }
        let all: String = GUIDE.split("\n\n---\n\n").map(to_html).collect();
        for tag in ["<table>", "<pre><code", "<li>", "<em>", "<a href="] {
            assert!(all.contains(tag), "{tag}");
        }
    }

    #[test]
    fn praise_and_complaint_are_distinguished() {
        let sentiment = Sentiment::default();
        let scores: Vec<f64> = sentiment
            .reviews
            .all
            .iter()
            .map(|review| sentiment.analyzer.polarity_scores(review).compound)
            .collect();
        assert!(scores.len() >= 16);
        assert!(scores.iter().any(|score| *score > 0.6));
        assert!(scores.iter().any(|score| *score < -0.6));
    }

    #[test]
    fn pieces_start_again() {
        let mut pieces = Pieces::new("a\nb\n", "\n");
        let four: Vec<&str> = (0..4).map(|_| pieces.next()).collect();
        assert_eq!(four, ["a", "b", "a", "b"]);
    }
}
