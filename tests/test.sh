#!/bin/bash
# Checks tests/run --perturb without a virtual machine: vm/run and sfs_behaviour are
# stand-ins. The last line reads "N passed, N failed, N skipped".
set -u

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=../scripts/lib/check.sh
source "$here/../scripts/lib/check.sh"
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
binaries=$tree/userspace/target/release
# `make test-unit` has built it.
program=$(realpath "${CARGO_TARGET_DIR:-$here/../userspace/target}/release/sfs_suite")
export PATH=$tree/bin:$PATH BPF_CLANG=clang

stub() {
	{ echo '#!/bin/bash' && cat; } >"$1"
	chmod 755 "$1"
}

# Eight cases and one with a disk; three that waste CPU time are run by name. What is called bad fails under perturbation 2, skips
# elsewhere; a guest with a case called crash ends in the middle under perturbation 3. wobbly
# and worse fail without a perturbation, and worse under 2 as well; a guest with silent fails
# and names no case.
fresh_tree() {
	rm -rf "${tree:?}"/*
	mkdir -p "$tree"/{tests,vm,bin} "$binaries"
	cp "$here/run" "$tree/tests/"
	stub "$tree/bin/cargo" </dev/null
	echo scx_sfs >"$binaries/scx_sfs"
	ln -s "$program" "$binaries/sfs_suite"
	stub "$binaries/sfs_behaviour" <<-'END'
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
		done
	END
	stub "$tree/vm/run" <<-END
		calls=$tree/calls
		$(
			cat <<-'END2'
				echo "$*" >>"$calls"
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
				exit $((failed > 0))
			END2
		)
	END
}

# says TEXT STATUS OPTION...: tests/run says TEXT and has this exit status.
says() {
	local text=$1 wanted=$2 output status=0
	shift 2
	output=$("$tree/tests/run" "$@" 2>&1) || status=$?
	echo "exit status $status: $output"
	[[ $status -eq $wanted && $output == *"$text"* ]]
}

calls() {
	[[ $(wc -l <"$tree/calls") -eq $1 ]]
}

fresh_tree
check 'a failure is in the table, with what repeats it' \
	says "bad: failed 1 of 2 times, under 2
    tests/run --cpus 2 --perturbation 2 a b c d e bad

16 passed, 1 failed, 1 skipped" 1 --perturb 2 --cpus 2 a b c d e bad f crash disk_g
check 'six cases to a guest, and one for the disk' calls 6
check 'the disk is there' grep -c -e '--perturb 1 .*--disk 256M .* --apart disk disk_g$' "$tree/calls"
check 'all cases without names' says '23 passed, 2 failed, 2 skipped' 1 --perturb 3
fresh_tree
check 'one alone, which fails the same way' says 'bad: failed 1 of 1 times, under 2' 1 --perturbation 2 a b c d e bad
check 'in one guest' calls 1
check 'with the same words' grep -c -e ' -- sfs_behaviour a b c d e bad$' "$tree/calls"
fresh_tree
check 'a guest that crashes loses its cases' says 'crash: failed 1 of 2 times, under 3
    tests/run --perturbation 3 f crash

3 passed, 1 failed, 0 skipped' 1 --perturb 2 --from 3 f crash
fresh_tree
check 'results are kept' says '2 passed, 0 failed' 0 --perturb 2 --out "$tree/out" a
check 'and not made again' says '3 passed, 0 failed' 0 --perturb 3 --out "$tree/out" a
check 'but for what was missing' calls 3
echo another >"$binaries/scx_sfs"
check 'another build wants another folder' says 'take another folder' 2 --perturb 2 --out "$tree/out" a
check 'so do other cases' says 'take another folder' 2 --perturb 2 --out "$tree/out" b
check 'no such case' says 'there is no case "nosuch"' 2 --perturb 2 nosuch
check 'no number' says "takes a number from 1 to 9999, not 'many'" 2 --perturb many
fresh_tree
echo 'also_slow: nobody knows why' >"$tree/tests/waste"
check 'a wait for longer than a tick beside an idle CPU fails a case' \
	says 'not ok 2 - slow # about it' 1 --jobs 1 a slow quick
check 'it is counted' says '2 passed, 1 failed, 0 skipped' 1 --jobs 1 a slow quick
check 'but not if it is listed' says '2 passed, 0 failed, 0 skipped' 0 --jobs 1 also_slow quick
printf '%s\n' 'too_wasteful/share: known' 'too_late/waits: known' 'very_late: of another kind' >"$tree/tests/waste"
check 'too much that is wasted fails a case' says 'not ok 1 - wasteful # about it' 1 --jobs 1 wasteful quick
check 'a wait that is too long fails a case' says '1 passed, 1 failed, 0 skipped' 1 --jobs 1 late quick
check 'unless they are listed' says '3 passed, 0 failed, 0 skipped' 0 --jobs 1 too_wasteful too_late quick
check 'as what they are' says 'not ok 1 - very_late # about it' 1 --jobs 1 very_late quick
fresh_tree
printf '%s\n' 'wobbly: it varies' 'worse: it varies' >"$tree/tests/unsteady"
check 'what fails here, and passes elsewhere, passes if it is listed' \
	says '2 passed, 0 failed, 0 skipped' 0 --jobs 1 a wobbly
check 'on two other machines' calls 3
check 'which is said' says 'wobbly: failed on one machine of 3; counted as passed' 0 --jobs 1 wobbly
check 'what fails on two machines of three does not pass' \
	says '1 passed, 1 failed, 0 skipped' 1 --jobs 1 wobbly worse
check 'a guest that names no case has failed' \
	says 'the guest "part-1" ended with exit status 1 before its cases had' 1 --jobs 1 silent
fresh_tree
check 'what is not listed is to pass on three others' \
	says 'wobbly: failed on one machine of 4; counted as passed' 0 --jobs 1 wobbly
check 'on all of them' calls 4
check 'and does not pass otherwise' says '0 passed, 1 failed, 0 skipped' 1 --jobs 1 worse
fresh_tree
check 'more than three that fail are not played again' \
	says '0 passed, 4 failed, 0 skipped' 1 --jobs 1 wobbly wobbly_2 wobbly_3 wobbly_4
check 'none of them' calls 1

conclude_checks
