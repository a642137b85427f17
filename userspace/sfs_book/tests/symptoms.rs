//! The messages that the page of symptoms quotes are those of the runbook, which a test of scx_sfs
//! compares with the sources.

use std::fs;
use std::path::Path;

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The parts of a quoted message that do not vary.
fn parts(message: &str) -> Vec<&str> {
    let parts = message.split('…').map(str::trim);
    parts.filter(|part| !part.is_empty()).collect()
}

#[test]
fn quoted_messages_are_in_the_runbook() {
    let (symptoms, runbook) = (page("troubleshooting.md"), page("runbook.md"));
    let words = symptoms.split('`').skip(1).step_by(2);
    let messages: Vec<&str> = words.filter(|word| word.contains('…')).collect();
    assert!(messages.len() >= 4, "{messages:?}");
    for message in messages {
        let is_there = |line: &str| {
            let mut rest = line;
            parts(message)
                .iter()
                .all(|part| match rest.split_once(part) {
                    Some((_, behind)) => {
                        rest = behind;
                        true
                    }
                    None => false,
                })
        };
        assert!(
            runbook.lines().any(is_there),
            "not in the runbook: {message}"
        );
    }
}
