//! libbpf's messages while the program is loaded. Most are of no interest, so they are shown only if
//! that fails.

use std::sync::Mutex;

use libbpf_rs::{set_print, PrintLevel};

static KEPT: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Number of lines shown. A verifier log has the important part at its end.
const SHOWN: usize = 60;

/// Keeps libbpf's messages from now on.
pub fn keep() {
    set_print(Some((PrintLevel::Info, keep_one)));
}

fn keep_one(_: PrintLevel, message: String) {
    if let Ok(mut kept) = KEPT.lock() {
        kept.extend(message.trim_end().lines().map(str::to_owned));
    }
}

/// Writes the last messages to standard error, and drops all.
pub fn show() {
    let Ok(mut kept) = KEPT.lock() else {
        return;
    };
    let skipped = kept.len().saturating_sub(SHOWN);
    for message in &kept[skipped..] {
        sfs_text::note(message);
    }
    kept.clear();
}
