//! Tables, as Markdown for readers and as CSV for programs.

use anyhow::Result;

/// A table. All rows are as long as the header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// The file's name without `.csv`.
    pub name: String,
    /// The title.
    pub title: String,
    /// The header.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<String>>,
    /// Whether all columns are text, not numbers.
    pub text: bool,
}

impl Table {
    /// An empty table.
    pub fn new(name: &str, title: &str, columns: &[&str]) -> Self {
        Self {
            name: name.to_string(),
            title: title.to_string(),
            columns: columns.iter().map(ToString::to_string).collect(),
            rows: Vec::new(),
            text: false,
        }
    }

    /// Adds a row.
    pub fn push(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    /// Formats it as Markdown, with numbers aligned right: all columns but the
    /// first, unless they are text.
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let mut text = format!("{}:\n\n", self.title);
        text += &line(&self.columns);
        text += "|---|";
        let column = if self.text { "---|" } else { "---:|" };
        text += &column.repeat(self.columns.len() - 1);
        text += "\n";
        for row in &self.rows {
            text += &line(row);
        }
        text
    }

    /// Formats it as CSV.
    ///
    /// # Errors
    /// None in practice.
    pub fn csv(&self) -> Result<Vec<u8>> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(&self.columns)?;
        for row in &self.rows {
            writer.write_record(row)?;
        }
        Ok(writer.into_inner()?)
    }
}

/// Milliseconds with significant digits only; `-` for a missing value.
pub fn ms(value: f64) -> String {
    match value {
        value if !value.is_finite() => "-".to_string(),
        value if value.abs() >= 100.0 => format!("{value:.0}"),
        value if value.abs() >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// A share in per cent; `-` for a missing value.
pub fn percent(share: f64) -> String {
    if share.is_finite() {
        format!("{:.1} %", 100.0 * share)
    } else {
        "-".to_string()
    }
}

/// A factor; `-` for a missing value.
pub fn factor(value: f64) -> String {
    if value.is_finite() {
        format!("{value:.2}x")
    } else {
        "-".to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_have_every_cell() {
        let mut table = Table::new("t", "Two cells", &["a", "b"]);
        table.push(vec!["x".into(), "1,5".into()]);
        assert_eq!(
            table.markdown(),
            "Two cells:\n\n| a | b |\n|---|---:|\n| x | 1,5 |\n"
        );
        table.text = true;
        assert!(table.markdown().contains("\n|---|---|\n"));
        assert_eq!(table.csv().unwrap(), b"a,b\nx,\"1,5\"\n");
    }

    #[test]
    fn numbers_have_significant_digits_only() {
        assert_eq!(
            [1234.5, 12.34, 1.234, f64::NAN].map(ms),
            ["1234", "12.3", "1.23", "-"]
        );
        assert_eq!(
            (percent(0.123), percent(f64::NAN)),
            ("12.3 %".into(), "-".into())
        );
        assert_eq!(factor(1.006), "1.01x");
    }
}
