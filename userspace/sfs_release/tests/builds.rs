//! `sfs_release reproducible` and `sfs_release fresh` in a repository of their own, with a stand-in
//! for cargo.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::unistd::geteuid;
use sfs_scripts::{run, Place, Said, NOBODY};

/// Builds programs that all have the text of the committed file `text`.
const CARGO: &str = "
[[ $* == 'build --quiet --release --locked --workspace' && -z ${CARGO_TARGET_DIR:-} ]] || exit 9
mkdir -p target/release/build/{sfs_bpf-1,sfs_waste-2}/out
cd target/release
for file in scx_sfs faasbench sfs_behaviour sfs_waste sfs_advise build/*/out/bpf.bpf.o; do
    cp ../../text \"${file/\\*/sfs_bpf-1}\"
done
cp ../../text build/sfs_waste-2/out/bpf.bpf.o";

/// A repository with one commit, below `repository`, and a cargo that runs these lines last.
fn project(lines: &str) -> Place {
    let place = Place::new();
    place.script("cargo", &format!("{CARGO}\n{lines}"));
    place.write("repository/userspace/text", "committed\n");
    place.write("tmp/file", "");
    place.remove("tmp/file");
    for arguments in [
        &["init", "--quiet"][..],
        &["add", "userspace/text"],
        &[
            "-c",
            "user.name=n",
            "-c",
            "user.email=e",
            "commit",
            "--quiet",
            "--message",
            "one",
        ],
    ] {
        let mut git = Command::new("git");
        git.current_dir(place.path("repository")).args(arguments);
        assert!(git.status().unwrap().success(), "{arguments:?}");
    }
    place
}

/// The program, copied to where every user may run it.
fn release(place: &Place, arguments: &[&str]) -> Command {
    // By another process: a program does not start while this one has it open for writing.
    let mut copy = Command::new("cp");
    copy.arg(env!("CARGO_BIN_EXE_sfs_release"))
        .arg(place.path("."));
    run(&mut copy).succeeded();
    let mut command = place.command("sfs_release");
    command
        .args(["--workspace", &place.text("repository/userspace")])
        .args(arguments)
        .env("CARGO", place.path("cargo"))
        .env("CARGO_TARGET_DIR", place.path("target"))
        .env("TMPDIR", place.path("tmp"))
        // The repository may be another user's.
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "safe.directory")
        .env("GIT_CONFIG_VALUE_0", "*");
    command
}

fn reproducible(place: &Place) -> Said {
    let said = run(&mut release(place, &["reproducible"]));
    let left = fs::read_dir(place.path("tmp")).unwrap().count();
    assert_eq!(left, 0, "it has left its folder");
    said
}

#[test]
fn equal_builds_pass_with_their_checksums() {
    let said = reproducible(&project(""));
    let lines: Vec<_> = said.succeeded().lines().collect();
    assert_eq!(lines[0], "ok      builds in a");
    assert!(lines[1].ends_with(" s"), "{lines:?}");
    assert_eq!(lines[2], "ok      builds in another-and-a-longer-one/b");
    assert_eq!(
        lines[4],
        "ok      the same programs and BPF objects, to the byte"
    );
    // sha256sum of "committed\n".
    let sum = "cc2e4bb5";
    let names: Vec<_> = lines[5..12]
        .iter()
        .map(|line| line.split_once("  ").unwrap())
        .collect();
    assert!(
        names.iter().all(|(one, _)| one.starts_with(sum)),
        "{names:?}"
    );
    let names: Vec<_> = names.iter().map(|(_, name)| *name).collect();
    let want = [
        "scx_sfs",
        "faasbench",
        "sfs_behaviour",
        "sfs_waste",
        "sfs_advise",
        "sfs_bpf, BPF object",
        "sfs_waste, BPF object",
    ];
    assert_eq!(names, want);
    assert_eq!(lines[12..], ["3 passed, 0 failed, 0 skipped"]);
}

#[test]
fn builds_that_depend_on_the_folder_fail() {
    let said = reproducible(&project("pwd >sfs_behaviour"));
    said.ended(1, "\n        sfs_behaviour differs from byte ");
    assert_eq!(said.out.matches(" differs from ").count(), 1, "{said:#?}");
    assert_eq!(said.last_line(), "2 passed, 1 failed, 0 skipped");
}

#[test]
fn a_build_that_fails_shows_its_output() {
    let said = reproducible(&project(
        "[[ $PWD != */b/* ]] || { echo no; exit 101; }; rm -f x",
    ));
    said.ended(
        1,
        "FAILED  builds in another-and-a-longer-one/b\n        no\n",
    );
    assert_eq!(said.last_line(), "2 passed, 1 failed, 0 skipped");
    let said = reproducible(&project("cd ..; rm -r release; exit 1"));
    assert_eq!(
        (said.status, said.last_line()),
        (1, "0 passed, 3 failed, 0 skipped")
    );
}

#[test]
fn uncommitted_changes_are_not_built() {
    let place = project("");
    let before = reproducible(&place);
    place.write("repository/userspace/text", "changed\n");
    let said = reproducible(&place);
    said.ended(0, "uncommitted changes are not built; this is commit ");
    let sums = |said: &Said| {
        said.out
            .lines()
            .skip(5)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(sums(&said), sums(&before));
}

#[test]
fn ordinary_users_skip_bare_machines() {
    let place = project("");
    for ci in ["", "1"] {
        let mut command = release(&place, &["fresh", "12"]);
        command.env("CI", ci);
        if geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        let said = run(&mut command);
        let want = "skipped bare machines: only root can make and enter their file systems\n\
                    0 passed, 0 failed, 1 skipped\n";
        assert_eq!((said.status, said.out.as_str()), (0, want), "{said:#?}");
    }
}

#[test]
fn a_wrong_command_line_is_exit_status_2() {
    let place = project("");
    for (arguments, text) in [
        (
            &["fresh", "--commit", "gone"][..],
            "there is no such commit",
        ),
        (&["fresh", "--targets", " "], "it names no target"),
        (&["fresh", "11"], "possible values: 12, 13"),
    ] {
        let said = run(&mut release(&place, arguments));
        said.ended(2, text);
        assert_eq!(said.out, "");
    }
}
