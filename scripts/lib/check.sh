# shellcheck shell=bash
# What the tests of the scripts share. Sourced, not run.

# shellcheck source=scripts/lib/skips.sh
source "${BASH_SOURCE[0]%/*}/skips.sh"

passed=0 failed=0 skipped=0
# What the list of skips calls the script, by its place in the tree.
suite=$(realpath --relative-to="${BASH_SOURCE[0]%/*}/../.." "$0")

# check NAME COMMAND...: passes if the command succeeds; its output is shown
# only if not.
check() {
	local name=$1 output
	shift
	if output=$("$@" 2>&1); then
		passed=$((passed + 1))
		echo "ok      $name"
	else
		failed=$((failed + 1))
		echo "FAILED  $name"
		printf '%s\n' "$output" | sed 's/^/        /'
	fi
}

# skip NAME WHY: counts as a failure where it may not be skipped.
skip() {
	local sentence
	if sentence=$(may_skip "$suite: $1" "$2"); then
		skipped=$((skipped + 1))
		echo "skipped $1: $2"
	else
		failed=$((failed + 1))
		echo "FAILED  $1"
		echo "        $sentence"
	fi
}

# fails_with TEXT COMMAND...: fails, and says TEXT.
fails_with() {
	local text=$1 output
	shift
	if output=$("$@" 2>&1); then
		echo "succeeded: $output"
		return 1
	fi
	echo "$output"
	[[ $output == *"$text"* ]]
}

# The last line of a test, and its exit status.
conclude_checks() {
	echo "$passed passed, $failed failed, $skipped skipped"
	[[ $failed -eq 0 ]]
}
