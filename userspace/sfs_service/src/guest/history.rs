//! The file that loaders leave for the next one.

use std::fs;

use anyhow::{Context, Result};
use serde_json::Value;

const FILE: &str = "/run/scx_sfs/history.json";

/// Returns the text of the file; empty if there is none.
pub fn text() -> String {
    fs::read_to_string(FILE).unwrap_or_default()
}

/// Returns whether it has an ejection.
pub fn has_ejection() -> bool {
    let history = serde_json::from_str(&text());
    history.is_ok_and(|history: Value| ejections(&history).is_some_and(|all| !all.is_empty()))
}

/// Writes each ejection twice.
///
/// # Errors
///
/// There is no such file, or it cannot be written.
pub fn double_ejections() -> Result<()> {
    let doubled = doubled(&text())?;
    fs::write(FILE, doubled).with_context(|| format!("cannot write {FILE}"))
}

fn doubled(text: &str) -> Result<String> {
    let mut history: Value = serde_json::from_str(text).context("the history is no JSON")?;
    let all = ejections(&history).context("the history has no list of ejections")?;
    let twice = [all.as_slice(), all.as_slice()].concat();
    history["ejections"] = twice.into();
    Ok(history.to_string())
}

fn ejections(history: &Value) -> Option<&Vec<Value>> {
    history.get("ejections")?.as_array()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ejection_becomes_two_of_the_same_time() {
        let text = r#"{"boot":"b","spans":[[1,18446744073709551615]],"ejections":[7],"last":null}"#;
        let history: Value = serde_json::from_str(&doubled(text).unwrap()).unwrap();
        assert_eq!(history["ejections"], serde_json::json!([7, 7]));
        assert_eq!(history["spans"][0][1], u64::MAX);
        assert_eq!(history["boot"], "b");
        assert!(doubled("{}").is_err());
        assert!(doubled("").is_err());
    }
}
