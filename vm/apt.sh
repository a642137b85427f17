# shellcheck shell=bash
# Packages of other Debian suites without installing them: apt with indexes,
# state and cache of its own, the mirror and the proxy of the machine's own apt
# configuration, and Debian's signing keys. Sourced after lib.sh.

: "${cache:?lib.sh comes first}"

# Older indexes are fetched again: their packages may have left the archive.
readonly INDEX_MINUTES=120

readonly BY_HAND='install QEMU 8.1 or later and a static busybox, and give a kernel with --kernel PATH'

declare -A suite_state=()

keyring() {
	local path
	for path in /usr/share/keyrings/debian-archive-keyring.{pgp,gpg}; do
		[[ -r $path ]] && printf '%s\n' "$path" && return
	done
	die "$EXIT_VM" "Debian's signing keys are not on this machine; install the package debian-archive-keyring, or $BY_HAND"
}

# The mirrors that may hold Debian's main archive, best first, one a line. Apt
# knows an archive's label once it has fetched its index; before that it knows
# addresses only, and use_suites finds out which of them Debian has signed.
mirrors() {
	local label release uri
	# The fields are apt's, not the shell's.
	# shellcheck disable=SC2016
	apt-get indextargets --format '$(LABEL)|$(RELEASE)|$(REPO_URI)' 'Created-By: Packages' 'Component: main' |
		while IFS='|' read -r label release uri; do
			[[ $label != Debian || $release == *-security ]] || printf '%s\n' "$uri"
		done
	apt-get update --print-uris 2>/dev/null |
		sed -nE "s:^'([^']*/)dists/([^/']+)/InRelease'.*:\2 \1:p" |
		while read -r release uri; do
			[[ $release == *-security ]] || printf '%s\n' "$uri"
		done
}

have_mirror() {
	[[ -n $(mirrors 2>/dev/null || true) ]]
}

# private_apt SUITES TOOL ARG...: TOOL sees the given suites and nothing else.
private_apt() {
	local suites=$1 tool=$2
	shift 2
	"$tool" -c "$cache/apt/${suites// /,}/apt.conf" "$@"
}

# write_apt_root DIRECTORY MIRROR SUITE...
# The status file is empty: apt then resolves the whole closure of a package,
# down to libc, whatever the host has installed. It is small, and the result
# is the same on every host. Apt does not change to a user of its own, who may
# have no access to the cache.
write_apt_root() {
	local root=$1 uri=$2 keys suite
	shift 2
	keys=$(keyring) || exit
	rm -rf "$root"
	mkdir -p "$root"/{lists,archives}/partial
	: >"$root/status"
	for suite; do
		printf 'deb [target=Packages signed-by=%s] %s %s main\n' "$keys" "$uri" "$suite"
	done >"$root/sources.list"
	cat >"$root/apt.conf" <<-EOF
		#clear APT::Update::Post-Invoke;
		#clear APT::Update::Post-Invoke-Success;
		#clear DPkg::Post-Invoke;
		#clear APT::Default-Release;
		APT::Architecture "amd64";
		APT::Sandbox::User "$(id -un)";
		APT::Install-Recommends "false";
		Acquire::Languages "none";
		Acquire::GzipIndexes "true";
		Dir::Etc::sourcelist "$root/sources.list";
		Dir::Etc::sourceparts "/dev/null";
		Dir::Etc::preferences "/dev/null";
		Dir::Etc::preferencesparts "/dev/null";
		Dir::State::lists "$root/lists";
		Dir::State::status "$root/status";
		Dir::State::extended_states "$root/extended_states";
		Dir::Cache::archives "$root/archives";
		Dir::Cache::pkgcache "$root/pkgcache.bin";
		Dir::Cache::srcpkgcache "";
		Dir::Log "$root";
	EOF
}

# use_suites SUITES: makes their index available; fails where the mirror has
# no such suite.
use_suites() {
	local suites=$1 root uri candidates
	root=$cache/apt/${suites// /,}
	[[ -z ${suite_state[$suites]:-} ]] || return "${suite_state[$suites]}"
	suite_state[$suites]=0
	[[ -z $(find "$root/indexed" -mmin "-$INDEX_MINUTES" 2>/dev/null || true) ]] || return 0
	say "fetching the package index of ${suites// / and }"
	command -v apt-get >/dev/null || die "$EXIT_VM" "there is no apt-get here; $BY_HAND"
	candidates=$(mirrors | awk '!seen[$0]++' || true)
	[[ -n $candidates ]] ||
		die "$EXIT_VM" "this machine's apt configuration names no mirror of Debian's main archive; add one, or $BY_HAND"
	while read -r uri; do
		# shellcheck disable=SC2086 # a list of words
		write_apt_root "$root" "$uri" $suites
		private_apt "$suites" apt-get -qq -o APT::Update::Error-Mode=any update >"$root/update.log" 2>&1 && touch "$root/indexed" && return
	done <<<"$candidates"
	say "skipping ${suites// / and }: $(grep -m 1 -E '^[EW]:' "$root/update.log" || printf 'apt-get update failed')"
	suite_state[$suites]=1
	return 1
}

# package_version SUITES PACKAGE: the version that the last of SUITES offers.
package_version() {
	private_apt "$1" apt-cache -t "${1##* }" policy "$2" | awk '$1 == "Candidate:" && $2 != "(none)" { print $2 }'
}

# Of what apt says: what is fetched, and what goes wrong.
show_progress() {
	grep --line-buffered -E '^(Get|Err|Fetched|[EW]:)' >&2 || true
}

# unpack_packages DIRECTORY PACKAGE.deb...
unpack_packages() {
	local into=$1 package
	shift
	mkdir -p "$into"
	for package; do
		dpkg -x "$package" "$into" || die "$EXIT_VM" "cannot unpack ${package##*/} into $into; is the disk full?"
	done
}

# download SUITES DIRECTORY PACKAGE...: the packages themselves, nothing else.
download() {
	local suites=$1 into=$2
	shift 2
	mkdir -p "$into"
	(cd "$into" && private_apt "$suites" apt-get -q -t "${suites##* }" download "$@" 2>&1) | show_progress ||
		die "$EXIT_VM" "cannot download $* from ${suites##* }; look at apt's message above and run this again"
}

# download_closure SUITES DIRECTORY PACKAGE...: with all that they depend on.
download_closure() {
	local suites=$1 into=$2
	shift 2
	mkdir -p "$into/partial"
	private_apt "$suites" apt-get -q -y -t "${suites##* }" -o "Dir::Cache::archives=$into" \
		install --download-only "$@" 2>&1 | show_progress ||
		die "$EXIT_VM" "cannot download $* and its libraries from ${suites##* }; look at apt's message above and run this again"
	rm -rf "$into/partial" "$into/lock"
}
