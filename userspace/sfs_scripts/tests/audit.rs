//! `scripts/audit`, with a stand-in for cargo-deny.

use sfs_scripts::{Host, Said};

/// The advisories cannot be had.
const OFFLINE: &str = "[[ \"$*\" != *fetch* ]] || exit 1";

fn audit(deny: &str) -> Said {
    let host = Host::bare();
    host.place.copy(&["scripts/audit"]);
    host.stub("cargo-deny", deny);
    host.run("audit", &[])
}

#[test]
fn advisories_that_cannot_be_had_are_one_line() {
    let said = audit(OFFLINE);
    said.ended(0, "advisories are NOT checked");
    assert_eq!((said.out.as_str(), said.err.lines().count()), ("", 1));
    assert_eq!(audit("").succeeded(), "");
}

#[test]
fn what_is_wrong_fails() {
    let bans = "[[ \"$*\" != *bans* ]] || exit 2";
    assert_eq!(audit(&format!("{OFFLINE}\n{bans}")).status, 2);
    assert_eq!(audit("[[ \"$*\" != *advisories* ]] || exit 4").status, 4);
}
