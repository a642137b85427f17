//! Tables in Markdown.

/// The head of a table: its title, and the names of the other columns.
///
/// # Example
///
/// ```
/// let head = sfs_lab::overhead::table::header("us", ["a".to_string()].into_iter());
/// assert_eq!(head, "| us | a |\n|---|---|\n");
/// ```
pub fn header(title: &str, columns: impl Iterator<Item = String>) -> String {
    let mut cells = vec![title.to_string()];
    cells.extend(columns);
    let rule = "---|".repeat(cells.len());
    row(&cells) + "|" + &rule + "\n"
}

/// A row of a table.
pub fn row(cells: &[String]) -> String {
    let cells: String = cells.iter().map(|cell| format!(" {cell} |")).collect();
    format!("|{cells}\n")
}

/// The number that a word begins with, as `4096B` does; 0 for what begins with none, or is
/// not there.
pub fn number(word: Option<&str>) -> f64 {
    let word = word.unwrap_or_default();
    let end = word.find(|c: char| !c.is_ascii_digit() && !"+-.".contains(c));
    let digits = &word[..end.unwrap_or(word.len())];
    digits.parse().unwrap_or(0.0)
}

/// The number behind each word `name` of a line.
pub fn after<'a>(line: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    let words = line.split_whitespace();
    words
        .clone()
        .zip(words.skip(1))
        .filter(move |(word, _)| *word == name)
        .map(|(_, next)| next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_may_have_units() {
        assert_eq!(number(Some("4096B")), 4096.0);
        assert_eq!(number(Some("-1.5")), -1.5);
        assert_eq!(number(Some("B1")) + number(None), 0.0);
    }

    #[test]
    fn the_word_before_tells_which_number_it_is() {
        let found: Vec<&str> = after("a 1 b 2 a 3 a", "a").collect();
        assert_eq!(found, ["1", "3"]);
    }
}
