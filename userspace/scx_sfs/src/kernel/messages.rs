//! What libbpf says while loading. Much of it is benign ("member not found in
//! kernel, skipping"), so it is shown only if loading fails, or with --verbose.

use std::sync::Mutex;

use libbpf_rs::{set_print, PrintLevel};
use tracing::debug;

static KEPT: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Lines shown of it; a verifier's log ends with what matters.
const SHOWN: usize = 60;

/// Has libbpf's messages kept from now on.
pub(super) fn keep() {
    set_print(Some((PrintLevel::Debug, keep_one)));
}

fn keep_one(level: PrintLevel, message: String) {
    let message = message.trim_end();
    message.lines().for_each(|line| debug!("{line}"));
    if level == PrintLevel::Debug {
        return;
    }
    if let Ok(mut kept) = KEPT.lock() {
        kept.extend(message.lines().map(str::to_owned));
    }
}

/// Writes the last of them to standard error, and forgets all.
pub(super) fn show() {
    let Ok(mut kept) = KEPT.lock() else {
        return;
    };
    let skipped = kept.len().saturating_sub(SHOWN);
    for message in &kept[skipped..] {
        crate::note(message);
    }
    kept.clear();
}
