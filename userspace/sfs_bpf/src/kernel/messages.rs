//! libbpf's messages during loading. Many are benign ("member not found in kernel, skipping"),
//! so they are shown only if loading fails, or with --verbose.

use std::sync::Mutex;

use libbpf_rs::{set_print, PrintLevel};
use tracing::debug;

static KEPT: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Number of lines shown. A verifier log has the important part at its end.
const SHOWN: usize = 60;

/// Keeps libbpf's messages from now on.
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

/// Writes the last messages to standard error, and drops all.
pub(super) fn show() {
    let Ok(mut kept) = KEPT.lock() else {
        return;
    };
    let skipped = kept.len().saturating_sub(SHOWN);
    for message in &kept[skipped..] {
        sfs_text::note(message);
    }
    kept.clear();
}
