//! `tests/run --perturb` without a virtual machine: stand-ins for `vm/run` and `sfs_behaviour`
//! show which cases run in which guests, and how their output is judged.

use sfs_scripts::{run, Place};
use std::fs;
use std::os::unix::fs::symlink;

const BINARIES: &str = "userspace/target/release";

/// Eight cases and one with a disk; the others are run by name.
const SUITE: &str = r#"
cases=(a b c d e bad f crash disk_g)
for word; do
    case $word in
    nosuch) echo 'Bail out! there is no case "nosuch"' && exit 1 ;;
    --list | --apart) ;;
    disk | suspend | isolcpus) apart=$word ;;
    *) wanted+=("$word") ;;
    esac
done
[[ -z ${wanted:-} ]] || cases=("${wanted[@]}")
for one in "${cases[@]}"; do
    [[ ${apart+is} && $one != ${apart}_* ]] || echo "$one  about it"
done"#;

/// The case bad fails under perturbation 2, and skips elsewhere. A guest with a case crash
/// ends in the middle under perturbation 3. wobbly and worse fail without a perturbation,
/// and worse under 2 too; a guest with silent fails and names no case.
const GUEST: &str = r#"
echo "$*" >>"${0%/vm/run}/calls"
[[ $* =~ --perturb\ ([0-9]+) ]] && perturbation=${BASH_REMATCH[1]}
while [[ $1 != sfs_behaviour ]]; do shift; done
shift
[[ $1 != --apart && $1 != --part ]] || shift 2
number=0 failed=0
echo "1..$#"
for one; do
    number=$((number + 1))
    case $one.$perturbation in
    bad.2) echo "not ok $number - bad # about it" && echo '#   it is bad' && failed=$((failed + 1)) ;;
    wobbly*. | worse. | worse.2) echo "not ok $number - $one # about it" && failed=$((failed + 1)) ;;
    bad.*) echo "ok $number - bad # SKIP not here" ;;
    crash.3) exit 125 ;;
    silent.) exit 1 ;;
    *) echo "ok $number - $one # about it" ;;
    esac
    [[ $one != *slow ]] || echo '#   under scx_sfs: 20.00 ms of idle CPUs wasted in 100 ms, 4.01 at once'
    [[ $one != quick ]] || echo '#   under scx_sfs: 20.00 ms of idle CPUs wasted in 100 ms, 4.00 at once'
    [[ $one != *wasteful ]] || echo '#   too much wasted: 9.00 ms beyond the first 1.5 ms of each, 0.300 % of the CPU time'
    [[ $one != *late ]] || echo '#   waited too long: kworker/3:1 (33, kernel thread) waited 30.00 ms for a CPU, from 1.000 s on; it is promised 20 ms at most'
    echo '#   1.0 s'
done
echo "$(($# - failed)) passed, $failed failed, 0 skipped"
exit $((failed > 0))"#;

/// A repository with `tests/run`, the program that it starts, and these stand-ins.
struct Tree(Place);

impl Tree {
    fn new() -> Self {
        let place = Place::new();
        place.copy(&["tests/run"]);
        place.script("bin/cargo", "");
        let program = place.path(&format!("{BINARIES}/sfs_suite"));
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        symlink(env!("CARGO_BIN_EXE_sfs_suite"), program).unwrap();
        place.write(&format!("{BINARIES}/scx_sfs"), "scx_sfs\n");
        place.script(&format!("{BINARIES}/sfs_behaviour"), SUITE);
        place.script("vm/run", GUEST);
        Self(place)
    }

    /// Runs `tests/run` with these arguments: it ends with this status, and says `text`.
    #[track_caller]
    fn says(&self, status: i32, text: &str, arguments: &str) {
        let path = format!("{}:{}", self.0.text("bin"), std::env::var("PATH").unwrap());
        let mut command = self.0.command("tests/run");
        command.env("PATH", path).env("BPF_CLANG", "clang");
        run(command.args(arguments.split_whitespace())).ended(status, text);
    }

    /// The command lines of the guests so far.
    fn guests(&self) -> Vec<String> {
        self.0.read("calls").lines().map(str::to_owned).collect()
    }

    fn write(&self, path: &str, text: &str) {
        self.0.write(path, text);
    }
}

#[test]
fn a_failure_is_in_the_table_with_what_repeats_it() {
    let tree = Tree::new();
    tree.says(
        1,
        "bad: failed 1 of 2 times, under 2
    tests/run --cpus 2 --perturbation 2 a b c d e bad

16 passed, 1 failed, 1 skipped",
        "--perturb 2 --cpus 2 a b c d e bad f crash disk_g",
    );
    // Six cases to a guest, and one for the disk.
    let guests = tree.guests();
    assert_eq!(guests.len(), 6, "{guests:#?}");
    let with_disk = |line: &&String| {
        line.contains("--perturb 1 ")
            && line.contains("--disk 256M ")
            && line.ends_with("--apart disk disk_g")
    };
    assert_eq!(guests.iter().filter(with_disk).count(), 1, "{guests:#?}");
    tree.says(1, "23 passed, 2 failed, 2 skipped", "--perturb 3");
}

#[test]
fn one_perturbation_alone_fails_the_same_way() {
    let tree = Tree::new();
    let text = "bad: failed 1 of 1 times, under 2";
    tree.says(1, text, "--perturbation 2 a b c d e bad");
    let guests = tree.guests();
    assert_eq!(guests.len(), 1);
    assert!(
        guests[0].ends_with(" -- sfs_behaviour a b c d e bad"),
        "{guests:?}"
    );
}

#[test]
fn a_guest_that_crashes_loses_its_cases() {
    Tree::new().says(
        1,
        "crash: failed 1 of 2 times, under 3
    tests/run --perturbation 3 f crash

3 passed, 1 failed, 0 skipped",
        "--perturb 2 --from 3 f crash",
    );
}

#[test]
fn results_are_kept_for_the_same_build_and_cases() {
    let tree = Tree::new();
    let out = tree.0.text("out");
    tree.says(
        0,
        "2 passed, 0 failed",
        &format!("--perturb 2 --out {out} a"),
    );
    tree.says(
        0,
        "3 passed, 0 failed",
        &format!("--perturb 3 --out {out} a"),
    );
    assert_eq!(tree.guests().len(), 3);
    let other = "take another folder";
    tree.says(2, other, &format!("--perturb 2 --out {out} b"));
    tree.write(&format!("{BINARIES}/scx_sfs"), "another\n");
    tree.says(2, other, &format!("--perturb 2 --out {out} a"));
}

#[test]
fn bad_arguments_are_refused() {
    let tree = Tree::new();
    tree.says(2, "there is no case \"nosuch\"", "--perturb 2 nosuch");
    tree.says(
        2,
        "takes a number from 1 to 9999, not 'many'",
        "--perturb many",
    );
}

#[test]
fn waste_fails_a_case_that_is_not_listed() {
    let tree = Tree::new();
    tree.write("tests/waste", "also_slow: nobody knows why\n");
    // A wait for longer than a tick beside an idle CPU.
    tree.says(1, "not ok 2 - slow # about it", "--jobs 1 a slow quick");
    tree.says(1, "2 passed, 1 failed, 0 skipped", "--jobs 1 a slow quick");
    tree.says(
        0,
        "2 passed, 0 failed, 0 skipped",
        "--jobs 1 also_slow quick",
    );
    let list = "too_wasteful/share: known\ntoo_late/waits: known\nvery_late: of another kind\n";
    tree.write("tests/waste", list);
    tree.says(
        1,
        "not ok 1 - wasteful # about it",
        "--jobs 1 wasteful quick",
    );
    tree.says(1, "1 passed, 1 failed, 0 skipped", "--jobs 1 late quick");
    tree.says(
        0,
        "3 passed, 0 failed, 0 skipped",
        "--jobs 1 too_wasteful too_late quick",
    );
    tree.says(
        1,
        "not ok 1 - very_late # about it",
        "--jobs 1 very_late quick",
    );
}

#[test]
fn an_unsteady_case_passes_on_two_other_machines() {
    let tree = Tree::new();
    tree.write("tests/unsteady", "wobbly: it varies\nworse: it varies\n");
    tree.says(0, "2 passed, 0 failed, 0 skipped", "--jobs 1 a wobbly");
    assert_eq!(tree.guests().len(), 3);
    let text = "wobbly: failed on one machine of 3; counted as passed";
    tree.says(0, text, "--jobs 1 wobbly");
    tree.says(1, "1 passed, 1 failed, 0 skipped", "--jobs 1 wobbly worse");
    let text = "the guest \"part-1\" ended with exit status 1 before its cases had";
    tree.says(1, text, "--jobs 1 silent");
}

#[test]
fn another_case_must_pass_on_three_other_machines() {
    let tree = Tree::new();
    let text = "wobbly: failed on one machine of 4; counted as passed";
    tree.says(0, text, "--jobs 1 wobbly");
    assert_eq!(tree.guests().len(), 4);
    tree.says(1, "0 passed, 1 failed, 0 skipped", "--jobs 1 worse");
}

#[test]
fn more_than_three_failures_are_not_tried_again() {
    let tree = Tree::new();
    let cases = "--jobs 1 wobbly wobbly_2 wobbly_3 wobbly_4";
    tree.says(1, "0 passed, 4 failed, 0 skipped", cases);
    assert_eq!(tree.guests().len(), 1);
}
