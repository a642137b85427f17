//! Rows of the kernel's own scheduler in a live kernel: whether their settings are in force
//! during a run, and put back after it. `make test` runs this after the build.

use sfs_scripts::{run, top};
use std::process::Command;

/// A run of one function for 1.5 s of CPU time, and what is in force meanwhile. `state` prints
/// the base slice and the preemption mode; `class_of` prints nice value, policy and slice of
/// the function's process: forked by the dispatcher, without its priority of 50.
const SCRIPT: &str = r#"
cd /tmp
printf 'arrival_us,function,phases\n0,f,cpu:1500000\n' >t.csv
state() {
	printf '%s: %s %s\n' "$1" "$(cat /sys/kernel/debug/sched/base_slice_ns)" "$(sed 's/.*(\(.*\)).*/\1/' /sys/kernel/debug/sched/preempt)"
}
class_of() {
	for process in /proc/[0-9]*; do
		[ "$process" != "/proc/$$" ] && grep -q __dispatch "$process/cmdline" 2>/dev/null || continue
		set -- "$1" $(sed 's/.*) //' "$process/stat")
		[ "${39}" = 50 ] || printf '%s: nice %s policy %s slice %s\n' "$1" "${18}" "${40}" "$(awk '$1 == "se.slice" { print $3 }' "$process/sched")"
	done
}
start() {
	faasbench run --trace t.csv --cpus 2 --out out --scheduler "$1" --name row >said 2>&1 &
	sleep "$2"
}
state before
start 'eevdf(slice=7ms;preempt=none;task-slice=30ms)' 0.8
state during
class_of during
wait
state after
grep -E -o '"(hz|preemption|base_slice_ns|task_slice_ns)": [^,]*' out/row.json
start 'eevdf(slice=7ms)' 0.8
state again
kill -9 $!
sleep 0.2
state killed
sleep 3
faasbench run --trace t.csv --cpus 2 --out out --scheduler 'cfs' || echo "cfs: status $?"
for row in 'renice(after=300ms)' 'idle(after=300ms)' 'renice(after=1200ms;steps=2)' 'sfs-user(after=400ms)'; do
	start "$row" 0.35
	class_of "$row"
	sleep 0.6
	class_of "$row"
	wait
	grep -o '"status": "[a-z]*"\|"moves": [0-9]*\|"lost": [0-9]*' out/row.json
done
"#;

/// The place of a line.
#[track_caller]
fn at(lines: &[&str], line: &str) -> usize {
    let found = lines.iter().position(|one| *one == line);
    found.unwrap_or_else(|| panic!("{line:?} is not in {lines:#?}"))
}

#[test]
fn settings_are_in_force_during_a_run_and_put_back() {
    let program = top().join("userspace/target/release/faasbench");
    let vm = top().join("vm/run");
    let said = run(Command::new(vm)
        .args(["--cpus", "2", "--quiet", "--in"])
        .arg(program)
        .args(["--", "sh", "-c", SCRIPT]));
    let lines: Vec<&str> = said.succeeded().lines().collect();
    let before = lines[0].strip_prefix("before: ").expect("the first line");
    assert!(!before.is_empty() && before != "7000000 none", "{before}");
    let order = [
        "during: 7000000 none".to_string(),
        "during: nice 0 policy 0 slice 30000000".to_string(),
        format!("after: {before}"),
        "\"preemption\": \"none\"".to_string(),
        "\"base_slice_ns\": 7000000".to_string(),
        format!("again: 7000000 {}", before.split(' ').nth(1).unwrap()),
        format!("killed: {before}"),
        "cfs: status 1".to_string(),
    ];
    let places: Vec<usize> = order.iter().map(|line| at(&lines, line)).collect();
    assert!(places.is_sorted(), "{lines:#?}");
    assert!(said.err.contains("has EEVDF and not CFS"), "{said:#?}");
    let rows: Vec<Vec<&str>> = lines[places[7] + 1..]
        .chunks(5)
        .map(|row| {
            row.iter()
                .map(|line| line.split(": ").last().unwrap())
                .collect()
        })
        .collect();
    let seen: Vec<(&str, &str, &str)> = rows.iter().map(|row| (row[0], row[1], row[3])).collect();
    let slice = before.split(' ').next().unwrap();
    let fair = format!("nice 0 policy 0 slice {slice}");
    let want = [
        (fair.clone(), format!("nice 19 policy 0 slice {slice}"), "1"),
        (fair.clone(), "nice 0 policy 5 slice".into(), "1"),
        (fair.clone(), format!("nice 9 policy 0 slice {slice}"), "2"),
        ("nice 0 policy 1 slice ".into(), fair, "2"),
    ];
    for (seen, want) in seen.iter().zip(&want) {
        assert_eq!(seen.0.trim(), want.0.trim(), "{lines:#?}");
        assert!(seen.1.starts_with(want.1.trim()), "{lines:#?}");
        assert_eq!(seen.2, want.2, "moves; {lines:#?}");
    }
    assert_eq!(rows.len(), want.len(), "{lines:#?}");
    for row in rows {
        assert_eq!((row[2], row[4]), ("\"ok\"", "0"), "{lines:#?}");
    }
}
