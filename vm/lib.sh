# shellcheck shell=bash
# What the scripts of vm/ share: messages, the cache, locks. Sourced, not run.

vm_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=$(realpath -m "${SCX_SFS_CACHE:-$(dirname "$vm_dir")/.cache}")

# Exit codes of our own. Everything else that vm/run returns is the command's.
# shellcheck disable=SC2034
readonly EXIT_USAGE=2 EXIT_TIMEOUT=124 EXIT_VM=125

say() {
	[[ -n ${QUIET:-} ]] || printf '%s: %s\n' "${0##*/}" "$*" >&2
}

# die CODE TEXT: one sentence, then the end.
die() {
	local code=$1
	shift
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit "$code"
}

# One fetcher at a time for one cache; the lock ends with the process. The
# descriptor stays open in children on purpose: a child that still writes to
# the cache must keep the next fetcher out.
lock_cache() {
	mkdir -p "$cache" || die "$EXIT_VM" "cannot create the cache directory $cache; set SCX_SFS_CACHE to a writable one"
	exec 9>"$cache/lock"
	flock -n 9 && return
	say "another fetch is using $cache; waiting for it"
	flock 9
}

# A directory inside the cache (so that a rename is atomic) for work in
# progress. What an interrupted fetch left behind is removed by the next one,
# which holds the lock.
new_staging() {
	rm -rf "$cache/staging"
	mkdir -p "$cache/staging"
	printf '%s\n' "$cache/staging"
}

# publish FROM TO: puts a finished directory or file into place.
publish() {
	if ! { mkdir -p "$(dirname "$2")" && rm -rf "$2" && mv "$1" "$2"; }; then
		die "$EXIT_VM" "cannot put ${2##*/} into the cache $cache; is the disk full?"
	fi
}

# version_at_least HAVE WANT
version_at_least() {
	[[ $(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1) == "$2" ]]
}
