# shellcheck shell=bash
# Tests that cannot be tried on this host. Sourced, not run. The same for tests in Rust,
# and more about it: userspace/sfs_skip.

# may_skip TEST WHY: succeeds, unless CI is set and tests/skips does not list the skip;
# then it says so. TEST begins with the script's path.
may_skip() {
	local line skip="$1: $2"
	case ${CI:-} in '' | 0 | false) return 0 ;; esac
	while read -r line; do
		[[ -n $line && $line != '#'* ]] || continue
		# shellcheck disable=SC2053 # a pattern
		[[ $skip != $line ]] || return 0
	done <"${BASH_SOURCE[0]%/*}/../../tests/skips"
	echo "with CI set nothing may be skipped that is not on the list tests/skips, and this is not: $skip"
	return 1
}
