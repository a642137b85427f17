//! Files of service times whose distribution a policy knows.

use anyhow::Result;
use faas_data::input::{self, InputError, MAX_US};
use std::path::Path;

/// Reads the file at `path`: one or more lines, each a whole number of
/// microseconds, 1 or more.
///
/// # Errors
/// If the file cannot be read, or [`InputError`] for the first invalid line.
pub fn read(path: &Path) -> Result<Vec<u64>> {
    let bytes = input::read(path)?;
    Ok(parse(&path.display().to_string(), &bytes)?)
}

fn parse(file: &str, bytes: &[u8]) -> Result<Vec<u64>, InputError> {
    let lines = input::lines(file, bytes)?;
    let duration = |(line, text): &(usize, &str)| {
        let us = input::number("the duration", text, MAX_US);
        let positive = us.and_then(|us| match us {
            0 => Err("the duration is 0, want 1 or more".to_string()),
            us => Ok(us),
        });
        positive.map_err(|message| InputError {
            file: file.to_string(),
            line: *line,
            message,
        })
    };
    lines.iter().map(duration).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_a_duration() {
        assert_eq!(parse("d", b"1\n250\n").unwrap(), [1, 250]);
        let cases = [
            ("", "d:1: the file is empty"),
            ("1\n\n2\n", "d:2: the duration `` is not a whole number"),
            ("0\n", "d:1: the duration is 0, want 1 or more"),
            ("1\n2,3\n", "d:2: the duration `2,3` is not a whole number"),
            (
                "1\n2",
                "d:2: the last line has no newline: the file is cut off",
            ),
        ];
        for (text, message) in cases {
            assert_eq!(
                parse("d", text.as_bytes()).unwrap_err().to_string(),
                message
            );
        }
    }
}
