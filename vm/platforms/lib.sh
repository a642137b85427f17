# shellcheck shell=bash
# What the platforms' commands share: settings, and a VM for each scheduler.
# Sourced after `platform`, the name of the guest's script, and `platform_args`,
# the options of scx_sfs for it, are set.

: "${platform:?the name of the platform comes first}"
: "${platform_args:?the options of scx_sfs for the platform come first}"
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=../lib.sh
. "$repository/vm/lib.sh"

readonly RELEASE=$repository/userspace/target/release PLATFORMS=$repository/vm/platforms
readonly SCHEDULERS=${SCHEDULERS:-eevdf scx_sfs}
readonly N=${N:-150} LOAD=${LOAD:-0.9} SCALE=${SCALE:-0.25} SEED=${SEED:-5}
readonly CPUS=${CPUS:-4} WORKERS=${WORKERS:-4} MEM=${MEM:-3G}
readonly ACCEL=${ACCEL:-icount} KERNEL=${KERNEL:-} OUT=${OUT:-$repository/out/platforms/$platform}

usage() {
	cat <<-EOF
		usage: $platform
		$(explain)

		settings, from the environment:
		  SCHEDULERS       "eevdf scx_sfs": rows; eevdf, or programs in userspace/target/release or PATH
		  ARGS_<row>       options of a sched_ext scheduler, instead of the platform's own
		  TRACE            a trace; or, without one, Table I of the SFS paper with
		  N LOAD SCALE SEED  requests, offered load, factor of all durations (150 0.9 0.25 5)
		  WORKERS          sandboxes of each function, which serve one request at a time (4)
		  CPUS MEM         of the VM (4 3G)
		  ACCEL KERNEL     as for vm/run (icount, its default)
		  JOBS             VMs at the same time (icount: one for each core; else 1)
		  OUT              where results go (out/platforms/$platform)
	EOF
}

# need_program NAME
need_program() {
	[[ -x $RELEASE/$1 ]] || die "$EXIT_USAGE" "$1 is not built; run make first"
}

# The functions fib20 to fib35 of the generated Table I by twos, as fib20 for
# fib20 and fib21: a platform for each is half as long in the starting.
by_twos() {
	awk -F , -v OFS=, '$2 ~ /^fib[0-9]+$/ { n = substr($2, 4); $2 = "fib" n - n % 2 } { print }'
}

make_trace() {
	trace=$OUT/trace.csv
	if [[ -n ${TRACE:-} ]]; then
		cp "$TRACE" "$trace" || die "$EXIT_USAGE" "cannot use TRACE=$TRACE; name a readable trace"
		return
	fi
	"$RELEASE/faasbench" gen table1 --invocations "$N" --load "$LOAD" --scale "$SCALE" --seed "$SEED" \
		--cpus "$CPUS" | by_twos >"$trace"
}

functions_of_trace() {
	tail -n +2 "$trace" | cut -d , -f 2 | sort -u | tr '\n' ' '
}

# The path of a sched_ext scheduler's program; nothing for EEVDF.
scheduler_program() {
	[[ $1 != eevdf ]] || return 0
	if [[ -x $RELEASE/$1 ]]; then
		printf '%s\n' "$RELEASE/$1"
	else
		command -v "$1" || die "$EXIT_USAGE" "found no scheduler $1, neither in userspace/target/release nor in PATH; build or install it"
	fi
}

# parse_command_line ARGUMENT...: there is nothing to give but --help.
parse_command_line() {
	[[ $# -gt 0 ]] || return 0
	[[ $1 == --help || $1 == -h ]] || die "$EXIT_USAGE" "unknown argument '$1'; --help lists the settings"
	usage
	exit 0
}

# run_row ROW PYTHON [OPTION]...: one VM; its results go straight to OUT.
run_row() {
	local row=$1 python=$2 args=ARGS_$1 scheduler began=$SECONDS status=0
	shift 2
	scheduler=$(scheduler_program "$row") || exit
	local -a options=(--accel "$ACCEL" --cpus "$CPUS" --mem "$MEM" --quiet --console "$OUT/$row.console")
	[[ -z $KERNEL ]] || options+=(--kernel "$KERNEL")
	[[ -z $scheduler ]] || options+=(--in "$scheduler")
	[[ -z $scheduler || -n ${!args+set} ]] || declare "$args=$platform_args"
	say "$row: booting a VM ($CPUS CPUs, $ACCEL), starting the platform, sending the requests; takes a few minutes"
	"$repository/vm/run" "${options[@]}" "$@" --env "FAASBENCH_ACCEL=$ACCEL" \
		--env "FUNCTIONS=$(functions_of_trace)" --env "WORKERS=$WORKERS" --env "CPUS=$CPUS" \
		--env "SCHEDULER=$row" --env "SCHEDULER_ARGS=${!args:-}" \
		--in "$RELEASE/faasbench" --in "$RELEASE/sfs_waste" --in "$python:/platform.tar" --in "$trace:/trace.csv" \
		--in "$PLATFORMS/functions:/platform/functions" --in "$PLATFORMS/guest:/platform/guest" \
		--out "/out:$OUT/$row" -- sh "/platform/guest/$platform" || status=$?
	say "$row took $((SECONDS - began)) s, status $status"
	cp "$OUT/$row/$row".{csv,json} "$OUT" 2>/dev/null || status=1
	return "$status"
}

# Runs all rows, JOBS at a time. Returns how many have failed.
run_rows() {
	local row running=0 failed=0 jobs=${JOBS:-1}
	if [[ -z ${JOBS:-} && $ACCEL == icount ]]; then jobs=$(nproc); fi
	for row in $SCHEDULERS; do
		if ((running >= jobs)); then
			wait -n || failed=$((failed + 1))
			running=$((running - 1))
		fi
		run_row "$row" "$@" &
		running=$((running + 1))
	done
	while ((running > 0)); do
		wait -n || failed=$((failed + 1))
		running=$((running - 1))
	done
	return "$failed"
}

report() {
	local row
	local -a summaries=()
	for row in $SCHEDULERS; do
		[[ ! -e $OUT/$row.json ]] || summaries+=("$OUT/$row.json")
	done
	((${#summaries[@]} > 0)) || die "$EXIT_VM" "no scheduler gave a result; $OUT has the consoles and what the platforms said"
	"$RELEASE/faasbench" report --out "$OUT" "${summaries[@]}"
	say "results are in $OUT: summary.json, report.html, a .csv for each row, and its logs in a folder"
}

# run_platform [OPTION]...: all of it; the options are for vm/run.
run_platform() {
	local python row failed=0
	need_program faasbench
	need_program sfs_waste
	for row in $SCHEDULERS; do scheduler_program "$row" >/dev/null; done
	mkdir -p "$OUT" || die "$EXIT_USAGE" "cannot make the folder OUT=$OUT; choose another"
	rm -f "$OUT"/{summary.json,report.html,trace.csv}
	for row in $SCHEDULERS; do
		rm -rf "${OUT:?}/$row" "$OUT/$row".{csv,json,console}
	done
	[[ -n $KERNEL ]] || "$repository/vm/fetch" >/dev/null
	python=$("$PLATFORMS/python-root")
	make_trace
	run_rows "$python" "$@" || failed=$?
	report
	((failed == 0)) || die "$EXIT_VM" "$failed of the schedulers gave no clean run; see above"
}
