#!/bin/bash
# Tests of vm/ and kernel-config/. Boots nine guests.
set -uo pipefail

vm=$(cd "$(dirname "$0")" && pwd)
check=$vm/../kernel-config/check
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=scripts/lib/skips.sh
source "$vm/../scripts/lib/skips.sh"

passed=0 failed=0 skipped=0

pass() {
	passed=$((passed + 1))
	printf 'ok       %s\n' "$1"
}

# fail NAME WHY [FILE]: with the end of what the command said.
fail() {
	failed=$((failed + 1))
	printf 'FAILED   %s: %s\n' "$1" "$2"
	[[ ! -s ${3:-} ]] || tail -n 5 "$3" | sed 's/^/         | /'
}

# skip NAME WHY: counts as a failure where it may not be skipped.
skip() {
	local sentence
	if ! sentence=$(may_skip "vm/test.sh: $1" "$2"); then
		fail "$1" "$sentence"
		return
	fi
	skipped=$((skipped + 1))
	printf 'skipped  %s: %s\n' "$1" "$2"
}

# expect NAME STATUS TEXT COMMAND...: the exit status, and TEXT in what it says.
expect() {
	local name=$1 wanted=$2 text=$3 status=0
	shift 3
	"$@" >"$work/said" 2>&1 || status=$?
	if [[ $status -ne $wanted ]]; then
		fail "$name" "exit status $status, and not $wanted" "$work/said"
	elif [[ -n $text ]] && ! grep -qF -e "$text" "$work/said"; then
		fail "$name" "does not say '$text'" "$work/said"
	else
		pass "$name"
	fi
}

# same NAME A B: two files or directories have the same bytes.
same() {
	if diff -r "$2" "$3" >"$work/said" 2>&1; then pass "$1"; else fail "$1" "$2 and $3 differ" "$work/said"; fi
}

bad_options() {
	expect 'no command' 2 'no command given' "$vm/run"
	expect 'unknown option' 2 "unknown option '--cpu'" "$vm/run" --cpu 4 -- true
	expect 'option without value' 2 '--cpus needs a value' "$vm/run" --cpus -- true
	expect 'no number of CPUs' 2 "not 'many'" "$vm/run" --cpus many -- true
	expect 'unknown accelerator' 2 "'warp' is none of them" "$vm/run" --accel warp -- true
	expect 'bad time limit' 2 "not '0'" "$vm/run" --timeout 0 -- true
	expect 'no number of a perturbation' 2 "not '1O'" "$vm/run" --perturb 1O -- true
	expect 'bad variable' 2 "not '1A=b'" "$vm/run" --env 1A=b -- true
	expect 'bad result directory' 2 "not 'out'" "$vm/run" --out out -- true
	expect 'missing input' 2 "cannot read '/nonexistent'" "$vm/run" --in /nonexistent -- true
	expect 'missing kernel image' 2 "'./nonexistent'" "$vm/run" --kernel ./nonexistent -- true
	expect 'no kernel image' 2 'is no x86 kernel image' "$vm/run" --kernel "$vm/run" -- true
	expect 'command without dashes' 2 "before the command 'true'" "$vm/run" true
	expect 'no pairs to compare' 2 'usage: same' "$vm/same" 0
	expect 'nothing of that name to compare' 2 "no workload 'sprint'" "$vm/same" 1 sprint
	expect 'bad fetch option' 2 "unknown option '-x'" "$vm/fetch-kernel" -x
}

image() {
	local options=(--busybox "$1" --in "$work/tree:/data/tree" --in /bin/bash)
	mkdir -p "$work/tree/sub"
	printf 'plain\n' >"$work/tree/sub/a file"
	ln -sf 'sub/a file' "$work/tree/link"
	"$vm/build-initrd" "${options[@]}" >"$work/initrd1"
	touch -d '2001-02-03' "$work/tree/sub/a file"
	"$vm/build-initrd" "${options[@]}" >"$work/initrd2"
	same 'the image does not depend on the files'\'' times' "$work/initrd1" "$work/initrd2"
	mkdir "$work/unpacked"
	(cd "$work/unpacked" && "$1" cpio -id <"$work/initrd1" 2>/dev/null)
	same 'the image holds a tree as it was' "$work/tree" "$work/unpacked/data/tree"
	same 'the image holds a program' /bin/bash "$work/unpacked/bin/bash"
}

race() {
	local status=0
	"$vm/run" --console "$work/console$1" --env 'GREETING=it'\''s "me"' --in "$vm/race" \
		--in "$work/input:/data/in" --out "/out:$work/out$1" -- sh -c 'cat /data/in && exec sh /bin/race' \
		>"$work/stdout$1" 2>"$work/stderr$1" || status=$?
	return "$status"
}

determinism() {
	local status=0
	printf 'brought in\n' >"$work/input"
	race 1 || status=$?
	if [[ $status -eq 7 ]]; then pass 'exit status of the command'; else fail 'exit status of the command' "$status, and not 7" "$work/stderr1"; fi
	expect 'a file brought in' 0 'brought in' cat "$work/stdout1"
	expect 'a variable brought in' 0 "GREETING=it's \"me\"" cat "$work/stdout1"
	expect 'standard error apart' 0 'to stderr' cat "$work/stderr1"
	expect 'no standard error on standard output' 1 '' grep 'to stderr' "$work/stdout1"
	expect 'a result brought back' 0 'ttyS1' cat "$work/out1/sub/interrupts"
	if [[ $(stat -c %s "$work/out1/random") -eq 4194304 ]]; then
		pass 'a large result brought back'
	else
		fail 'a large result brought back' 'it has another size'
	fi
	race 2 || true
	same 'standard output is the same again' "$work/stdout1" "$work/stdout2"
	same 'the console is the same again' "$work/console1" "$work/console2"
	same 'the results are the same again' "$work/out1" "$work/out2"
}

# perturbed RUN K: what another machine shows of itself.
perturbed() {
	"$vm/run" --perturb "$2" --console "$work/perturbed$1.console" -- \
		sh -c "env; dmesg; cat /proc/interrupts /proc/kallsyms | head -n 200; head -c 64 /dev/urandom | od" \
		>"$work/perturbed$1" 2>/dev/null || true
}

perturbations() {
	perturbed 1 7
	perturbed 2 7
	perturbed 3 8
	expect 'the guest knows its perturbation' 0 'VM_PERTURB=7' cat "$work/perturbed1"
	same 'a perturbation is the same again' "$work/perturbed1" "$work/perturbed2"
	same 'and so is its console' "$work/perturbed1.console" "$work/perturbed2.console"
	expect 'all CPUs are there' 0 'smp: Brought up 1 node, 4 CPUs' cat "$work/perturbed3"
	# Addresses and random numbers are others; each of these lines is there once.
	if [[ $(diff "$work/perturbed1" "$work/perturbed3" | grep -c '^<') -gt 100 ]]; then
		pass 'another perturbation is another machine'
	else
		fail 'another perturbation is another machine' 'they hardly differ'
	fi
}

failures() {
	expect 'a panic is an error' 125 'the guest'\''s kernel panicked' \
		"$vm/run" --cpus 1 -- sh -c 'echo c >/proc/sysrq-trigger'
	cp "$work/said" "$work/panic"
	expect 'the console'\''s end is shown' 0 'sysrq triggered crash' cat "$work/panic"
	expect 'a missing exit status is an error' 125 'without the command'\''s exit status' \
		"$vm/run" --cpus 1 -- poweroff -f
	expect 'the time limit' 124 'did not end within 3 seconds' "$vm/run" --cpus 1 --timeout 3 -- sleep 1000000
}

# The kernel that is run must itself pass the check.
multi_threaded() {
	expect 'several host threads, and the check inside' 0 'accel tcg' \
		"$vm/run" --accel tcg --in "$check" --in "${check%/*}/scx_sfs.config" -- \
		sh -c "echo accel \$VM_ACCEL; check --running"
}

kvm() {
	if [[ ! -w /dev/kvm ]]; then
		skip 'kvm' 'no /dev/kvm here'
	elif "$vm/run" --accel kvm -- true >"$work/kvm" 2>&1; then
		pass 'kvm'
	else
		expect 'kvm that does not work is an error' 0 'KVM does not run this kernel here' cat "$work/kvm"
	fi
}

config_check() {
	local config=$work/config
	sed -n '/^CONFIG_/p' "${check%/*}/scx_sfs.config" >"$config"
	expect 'a complete configuration' 0 '' "$check" "$config"
	gzip -k "$config"
	expect 'a compressed configuration' 0 '' "$check" "$config.gz"
	sed '/SCHED_CLASS_EXT/d' "$config" >"$config.1"
	expect 'a required option is missing' 1 'required: CONFIG_SCHED_CLASS_EXT=y' "$check" "$config.1"
	sed 's/^CONFIG_BPF_SYSCALL=y/CONFIG_BPF_SYSCALL=m/' "$config" >"$config.2"
	expect 'a required option has another value' 1 '(it is m)' "$check" "$config.2"
	sed 's/^\(CONFIG_KPROBES\)=y/# \1 is not set/' "$config" >"$config.3"
	expect 'a recommended option is missing' 0 'recommended: CONFIG_KPROBES=y' "$check" "$config.3"
	expect 'no configuration' 2 'has no CONFIG_ lines' "$check" "$vm/init"
	expect 'no file' 2 'cannot read' "$check" "$work/nonexistent"
	expect 'bad option of the check' 2 "unknown option '--run'" "$check" --run
}

config_check
"$vm/fetch" >/dev/null || exit
bad_options
image "$("$vm/fetch-busybox")"
determinism
perturbations
failures
multi_threaded
kvm
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[[ $failed -eq 0 ]]
