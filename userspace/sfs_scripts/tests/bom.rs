//! `scripts/bom`, with a stand-in for the list of crates that cargo prints.

use sfs_scripts::Host;

#[test]
fn bills_name_versions_licences_and_checksums_and_no_folder() {
    let host = Host::bare();
    host.place.copy(&["scripts/bom"]);
    host.place.write(
        "userspace/Cargo.lock",
        "[[package]]\nname = \"adler2\"\nversion = \"2.0.1\"\nchecksum = \"ab12\"\n",
    );
    host.place.write("userspace/target/release/empty", "");
    for tool in ["mktemp", "rm", "mkdir", "mv", "chmod", "awk"] {
        host.link(tool);
    }
    // A program, a crate of ours, one of the registry, and a macro.
    host.stub(
        "cargo",
        "echo \"$4 v0.1.0 (/home/me/$4)|GPL-2.0-only\"
         echo 'sfs_text v0.1.0 (/home/me/sfs_text)|GPL-2.0-only'
         echo 'adler2 v2.0.1|0BSD/MIT'
         echo 'paste v1.0.15 (proc-macro)|MIT OR Apache-2.0'",
    );
    host.run("bom", &[]).succeeded();
    let bill = host
        .place
        .read("userspace/target/release/faasbench.cdx.json");
    for part in [
        "\"metadata\": {\"component\": {\"type\": \"application\", \"name\": \"faasbench\", \"version\": \"0.1.0\"",
        "\"adler2\", \"version\": \"2.0.1\", \"licenses\": [{\"expression\": \"0BSD OR MIT\"}], \"purl\": \"pkg:cargo/adler2@2.0.1\", \"hashes\": [{\"alg\": \"SHA-256\", \"content\": \"ab12\"}]}",
        "\"paste\", \"version\": \"1.0.15\"",
    ] {
        assert!(bill.contains(part), "no {part} in {bill}");
    }
    assert!(!bill.contains("home/me"), "{bill}");
    assert_eq!(bill.matches("\"type\": \"library\"").count(), 3);
}
