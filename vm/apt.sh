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

# The mirror of Debian's main archive that this machine uses. The security
# archive and other vendors' archives have the same component names, so go by
# the label, which is known once the indexes have been fetched, and by the
# suite's name where it is not.
mirror() {
	local label release uri
	command -v apt-get >/dev/null ||
		die "$EXIT_VM" "there is no apt-get here; $BY_HAND"
	# The fields are apt's, not the shell's.
	# shellcheck disable=SC2016
	while IFS='|' read -r label release uri; do
		[[ $uri != cdrom:* && $release != *-security && $release != */updates ]] || continue
		case $label in
		Debian | '$(LABEL)') printf '%s\n' "$uri" && return ;;
		esac
	done < <(apt-get indextargets --format '$(LABEL)|$(RELEASE)|$(REPO_URI)' \
		'Created-By: Packages' 'Component: main')
	die "$EXIT_VM" "this machine's apt configuration names no mirror of Debian's main archive; add one, or $BY_HAND"
}

# private_apt SUITES TOOL ARG...: TOOL sees the given suites and nothing else.
private_apt() {
	local suites=$1 tool=$2
	shift 2
	"$tool" -c "$cache/apt/${suites// /,}/apt.conf" "$@"
}

# The status file is empty: apt then resolves the whole closure of a package,
# down to libc, whatever the host has installed. It is small, and the result
# is the same on every host.
write_apt_root() {
	local root=$1 suite keys uri
	shift
	keys=$(keyring)
	uri=$(mirror)
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
	local suites=$1 root
	root=$cache/apt/${suites// /,}
	[[ -z ${suite_state[$suites]:-} ]] || return "${suite_state[$suites]}"
	suite_state[$suites]=0
	[[ -z $(find "$root/indexed" -mmin "-$INDEX_MINUTES" 2>/dev/null) ]] || return 0
	say "fetching the package index of ${suites// / and }"
	rm -rf "$root"
	# shellcheck disable=SC2086 # a list of words
	write_apt_root "$root" $suites
	if ! private_apt "$suites" apt-get -qq update >"$root/update.log" 2>&1; then
		say "skipping ${suites// / and }: $(grep -m 1 '^E:' "$root/update.log" || printf 'apt-get update failed')"
		suite_state[$suites]=1
		return 1
	fi
	touch "$root/indexed"
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
