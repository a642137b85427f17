# shellcheck shell=bash
# `run --perturb N`: the same cases on N machines that differ a little. Sourced by run,
# whose settings it uses.

# So few that to repeat a failure, which takes all the cases of its guest, is cheap.
readonly CASES_OF_A_SAMPLE=6

# listed OPTION...: prints the wanted cases.
listed() {
	local lines
	lines=$("$binaries/sfs_behaviour" --list "$@" "${arguments[@]}") || fail_usage "${lines#Bail out! }"
	cut -d ' ' -f 1 <<<"$lines"
}

# names KIND: prints those of them that need a machine of this kind; plain: any.
names() {
	case $1 in
	plain) grep -vxF -f <(for kind in $KINDS_APART; do names "$kind"; done) <<<"$everything" || true ;;
	*) listed --apart "$1" ;;
	esac
}

# plan FIRST LAST: a line for each guest: perturbation, number, kind, cases.
plan() {
	local perturbation kind number
	for ((perturbation = $1; perturbation <= $2; perturbation++)); do
		number=0
		for kind in plain $KINDS_APART; do
			while read -r cases; do
				[[ -z $cases ]] || echo "$perturbation $((++number)) $kind $cases"
			done < <(names "$kind" | xargs -r -n "$CASES_OF_A_SAMPLE")
		done
	done
}

# sample PERTURBATION NUMBER KIND CASE...: one guest, whose output becomes a file in
# $samples when it has ended.
sample() {
	local perturbation=$1 kind=$3 file=$samples/$1.$2 status=0 machine=() apart=()
	shift 3
	[[ $kind == plain ]] || apart=(--apart "$kind")
	mapfile -t machine < <(machine_for "$kind")
	"$top/vm/run" --quiet --timeout "$TIMEOUT" --console "$file.console" --perturb "$perturbation" \
		"${options[@]}" "${machine[@]}" --in "$binaries/scx_sfs" --in "$binaries/sfs_behaviour" \
		-- sfs_behaviour "${apart[@]}" "$@" >"$file.part" 2>"$file.log" || status=$?
	# Ended by us, or from outside: that says nothing about the cases.
	[[ $status -lt 126 ]] || return 0
	if [[ $status -gt 1 ]]; then
		printf 'the guest ended with exit status %s before its cases had\n' "$status"
	fi >>"$file.log"
	verdicts "$perturbation" "$file" "$@" >"$file.verdicts"
	mv "$file.part" "$file"
	tell "$file"
}

# verdicts PERTURBATION FILE CASE...: one line for each case: its name, what became of it,
# and where. A case of which the guest says nothing has failed.
verdicts() {
	local name verdict perturbation=$1 file=$2
	shift 2
	for name; do
		verdict=$(awk -v name="$name" '
			/^(not )?ok / {
				failed = $1 == "not"
				if ($(failed + 4) == name)
					print failed ? "failed" : / # SKIP / ? "skipped" : "passed"
			}' "$file.part")
		echo "$name ${verdict:-failed} $perturbation $*"
	done
}

# tell FILE: what a guest has come to, its failures in full.
tell() {
	local perturbation failed
	perturbation=${1##*/} perturbation=${perturbation%.*}
	failed=$(awk '$2 == "failed"' "$1.verdicts" | wc -l)
	printf 'perturbation %s: %s of %s cases failed (%s of %s guests have ended)\n' "$perturbation" \
		"$failed" "$(wc -l <"$1.verdicts")" "$(samples_done)" "$planned"
	[[ $failed -gt 0 ]] || return 0
	awk '/^(not )?ok / { shown = /^not/ } shown && !/^[0-9]+ passed, / { print "    " $0 }' "$1"
	grep '^the guest ended' "$1.log" | sed 's/^/    /' || true
}

samples_done() {
	find "$samples" -name '*.verdicts' | wc -l
}

# What samples are of: the programs, the machine that they run on, and the cases.
made_of() {
	(cd "$binaries" && sha256sum scx_sfs sfs_behaviour)
	printf '%s\n' "${options[@]}" -- "${arguments[@]}"
}

# Chooses the folder for the samples; in one that the user has given, those go on that
# are there.
open_samples() {
	samples=${out:-$work/samples}
	mkdir -p "$samples"
	if [[ -e $samples/made-of ]]; then
		cmp -s "$samples/made-of" <(made_of) ||
			fail_usage "what is in $out is of other programs, another machine or other cases; take another folder"
	fi
	made_of >"$samples/made-of"
}

# Prints the cases that have failed: how often, under which perturbations, and how to see
# each again.
table() {
	local name failed of perturbations perturbation cases
	while read -r name failed of perturbations; do
		printf '\n%s: failed %s of %s times, under %s\n' "$name" "$failed" "$of" "${perturbations// /, }"
		while read -r perturbation cases; do
			printf '    tests/run%s --perturbation %s %s\n' "$repeat_options" "$perturbation" "$cases"
		done < <(sort -n -k 3,3 "$samples"/*.verdicts |
			awk -v name="$name" '$1 == name && $2 == "failed" { $1 = $2 = ""; print }')
	done < <(sort -n -k 3,3 "$samples"/*.verdicts | awk '
		{ of[$1]++ }
		$2 == "failed" { failed[$1]++; where[$1] = where[$1] " " $3 }
		END { for (name in failed) print name, failed[name], of[name] where[name] }' |
		sort -k 2,2nr -k 1,1)
	echo
	awk '{ sum[$2]++ }
		END { printf "%d passed, %d failed, %d skipped\n", sum["passed"], sum["failed"], sum["skipped"] }' \
		"$samples"/*.verdicts
}

# run_perturbed FIRST LAST: draws the samples, $jobs at a time. Fails if a case has.
run_perturbed() {
	local running=0 perturbation number rest lines
	everything=$(listed) || exit
	jobs=${jobs:-$(default_jobs)}
	mapfile -t lines < <(plan "$1" "$2")
	planned=${#lines[@]}
	open_samples
	for line in "${lines[@]}"; do
		read -r perturbation number rest <<<"$line"
		[[ ! -e $samples/$perturbation.$number ]] || continue
		if ((running >= jobs)); then
			wait -n || true
			running=$((running - 1))
		fi
		# shellcheck disable=SC2086 # words without blanks
		sample "$perturbation" "$number" $rest &
		running=$((running + 1))
	done
	wait
	table
	! grep -q '^[^ ]* failed ' "$samples"/*.verdicts
}
