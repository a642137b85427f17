//! `sfs_service test` without a virtual machine: stand-ins for `vm/run`, mmdebstrap and the
//! functions of `vm/apt.sh` show what the guests are given, and how their ends are judged.

use std::env;

use sfs_scripts::{run, Place, Said};

const PROGRAM: &str = env!("CARGO_BIN_EXE_sfs_service");

/// Writes its command line and the files of the stage down. The part's name is the last word;
/// the file end.PART has the exit status, if it is not 0.
const GUEST: &str = r#"
here=${0%/vm/run} part=${!#} stage= console=
echo "$*" >>"$here/calls"
for ((i = 1; i < $#; i++)); do
    next=$((i + 1))
    [[ ${!i} != --in ]] || stage=${!next%:*}
    [[ ${!i} != --console ]] || console=${!next}
done
(cd "$stage" && find . -type f -printf '%P %m\n' | LC_ALL=C sort) >"$here/stage"
printf 'line %d of the console\n' {1..30} >"$console"
echo "the checks of $part"
exit "$(cat "$here/end.$part" 2>/dev/null || echo 0)""#;

/// The mirror has each suite, or bookworm only.
const APT: &str = r#"
keyring() { echo /keys; }
use_suites() {
    mkdir -p "$cache/apt/$1"
    echo "deb [signed-by=/keys] some://mirror $1 main" >"$cache/apt/$1/sources.list"
    [[ $1 == bookworm || ! -e only-bookworm ]]
}"#;

/// The archive is the argument before the last.
const MMDEBSTRAP: &str = r#"
archive=${@: -2:1}
printf '%s\n' "$@" >"$archive""#;

/// A package is the version in a file; the arguments are --workspace FOLDER deb --version TEXT --to
/// FOLDER.
const RELEASE: &str = r#"mkdir -p "$7" && echo "$5" >"$7/$5.deb""#;

const BUILT: &str = "userspace/target/release";

/// A repository with what `sfs_service test` needs of it.
struct Tree(Place);

impl Tree {
    fn new() -> Self {
        let place = Place::with(&["vm/lib.sh", "packaging/install.sh"]);
        place.write("vm/apt.sh", APT);
        place.script("vm/run", GUEST);
        place.script("bin/mmdebstrap", MMDEBSTRAP);
        place.script("bin/strip", "");
        place.write("LICENSE", "");
        place.write("docs/monitoring.md", "");
        place.write("docs/runbook.md", "");
        for name in ["scx_sfs", "sfs_advise", "faasbench", "sfs_waste"] {
            place.script(&format!("{BUILT}/{name}"), "");
            place.write(&format!("{BUILT}/{name}.cdx.json"), "{}");
        }
        place.write(&format!("{BUILT}/licences.txt"), "");
        place.write(&format!("{BUILT}/share/man/man8/scx_sfs.8"), "");
        place.write("packaging/config.toml", "");
        place.script(&format!("{BUILT}/sfs_release"), RELEASE);
        Self(place)
    }

    /// Runs `sfs_service` with these arguments.
    fn runs(&self, arguments: &str) -> Said {
        let path = format!("{}:{}", self.0.text("bin"), env::var("PATH").unwrap());
        let mut command = self.0.command(PROGRAM);
        run(command.env("PATH", path).args(arguments.split_whitespace()))
    }

    /// The command lines of the guests so far.
    fn guests(&self) -> Vec<String> {
        self.0.read("calls").lines().map(str::to_owned).collect()
    }
}

#[test]
fn each_part_has_a_guest() {
    let tree = Tree::new();
    let said = tree.runs("test");
    let checks =
        "the checks of quick\nthe checks of package\nthe checks of hotplug\nthe checks of stall\n";
    assert_eq!(said.succeeded(), checks);
    let guests = tree.guests();
    for (guest, (part, cpus)) in
        guests
            .iter()
            .zip([("quick", 1), ("package", 1), ("hotplug", 2), ("stall", 1)])
    {
        let (root, out) = match part {
            "package" => (
                "package-trixie",
                format!(" --out /out:{}", tree.0.text("out/package")),
            ),
            _ => ("service-bookworm", String::new()),
        };
        let archive = tree.0.text(&format!(".cache/roots/{root}.tar"));
        assert!(
            guest.starts_with(&format!("--root {archive} --in ")),
            "{guest}"
        );
        let machine = format!(":/vm-run/sfs --cpus {cpus} --timeout 3000 --console ");
        assert!(guest.contains(&machine), "{guest}");
        let command = format!("console.{part}{out} -- /vm-run/sfs/sfs_service guest {part}");
        assert!(guest.ends_with(&command), "{guest}");
    }
    assert_eq!(guests.len(), 4, "{guests:#?}");
    assert_eq!(
        tree.runs("test hotplug").succeeded(),
        "the checks of hotplug\n"
    );
    assert_eq!(tree.guests().len(), 5);
}

#[test]
fn a_guest_has_what_is_installed_and_the_checks() {
    let tree = Tree::new();
    tree.runs("test quick").succeeded();
    let stage = tree.0.read("stage");
    let files: Vec<&str> = stage.lines().collect();
    let want = [
        "LICENSE 644",
        "built/faasbench 755",
        "built/faasbench.cdx.json 644",
        "built/licences.txt 644",
        "built/scx_sfs 755",
        "built/scx_sfs.cdx.json 644",
        "built/sfs_advise 755",
        "built/sfs_advise.cdx.json 644",
        "built/sfs_waste 755",
        "built/sfs_waste.cdx.json 644",
        "built/share/man/man8/scx_sfs.8 644",
        "docs/monitoring.md 644",
        "docs/runbook.md 644",
        "packaging/config.toml 644",
        "packaging/install.sh 755",
        "sfs_service 755",
    ];
    assert_eq!(files, want);
}

#[test]
fn the_root_file_system_is_made_once() {
    let tree = Tree::new();
    let said = tree.runs("test --release 12 quick");
    said.ended(
        0,
        "sfs_service: making a root file system of bookworm with systemd\n",
    );
    let archive = ".cache/roots/service-bookworm.tar";
    let options = tree.0.read(archive);
    for line in [
        "--variant=essential",
        "--include=systemd,systemd-sysv,procps,libelf1,zlib1g",
        "--keyring=/keys",
        "deb some://mirror bookworm main",
    ] {
        assert!(
            options.lines().any(|option| option == line),
            "{line}: {options}"
        );
    }
    let hook = r#"--customize-hook=cd "$1" && rm -rf usr/share/perl usr/share/doc "#;
    assert!(options.contains(hook), "{options}");
    tree.0.write(archive, "the same");
    tree.runs("test quick").succeeded();
    assert_eq!(tree.0.read(archive), "the same");
    // The package's machine is a fresh one, with apt.
    tree.runs("test package").succeeded();
    let options = tree.0.read(".cache/roots/package-trixie.tar");
    for line in ["--variant=apt", "deb some://mirror trixie main"] {
        assert!(
            options.lines().any(|option| option == line),
            "{line}: {options}"
        );
    }
}

#[test]
fn without_a_root_file_system_there_is_no_guest() {
    let tree = Tree::new();
    tree.0.write("only-bookworm", "");
    let text = "this machine's mirror has no Debian suite trixie";
    tree.runs("test --release 13").ended(125, text);
    tree.0.script("bin/mmdebstrap", "exit 7");
    let text = "cannot make a root file system of bookworm; look at the messages above";
    tree.runs("test").ended(125, text);
    assert!(!tree.0.path(".cache/roots/service-bookworm.tar").exists());
    assert!(tree.guests().is_empty());
}

#[test]
fn a_part_that_fails_does_not_stop_the_others() {
    let tree = Tree::new();
    tree.0.write("end.quick", "1");
    let said = tree.runs("test quick hotplug");
    said.ended(1, "the checks of hotplug");
    // The failed check has said more.
    assert!(!said.err.contains("console"), "{said:#?}");
    tree.0.write("end.quick", "125");
    let said = tree.runs("test quick hotplug");
    said.ended(1, "the checks of hotplug");
    assert!(
        said.err.starts_with("line 11 of the console\n"),
        "{said:#?}"
    );
    assert!(said.err.ends_with("line 30 of the console\n"), "{said:#?}");
}

#[test]
fn what_is_not_built_is_bad_usage() {
    for name in ["sfs_waste", "scx_sfs.cdx.json", "licences.txt"] {
        let tree = Tree::new();
        tree.0.remove(&format!("{BUILT}/{name}"));
        let text = format!("{name} is not built; run make first");
        tree.runs("test quick").ended(2, &text);
        assert!(tree.guests().is_empty());
    }
}

#[test]
fn other_words_are_bad_usage() {
    let tree = Tree::new();
    for (arguments, word) in [
        ("test slow", "slow"),
        ("test --release 11", "11"),
        ("guest", "PART"),
        ("guest slow", "slow"),
    ] {
        tree.runs(arguments).ended(2, word);
    }
    // This machine is no guest, and its services are not touched.
    tree.runs("guest quick")
        .ended(2, "only in the virtual machine");
}
