#!/bin/sh
# Installs scx_sfs, sfs_advise, faasbench, sfs_waste, their documents and the service, or
# removes them.
#
#   packaging/install.sh [install|uninstall]
#
# From the environment:
#   PREFIX       where programs and documents go (/usr/local)
#   SYSCONFDIR   where the service's options go, below default/, and the
#                configuration, below scx_sfs/ (/etc; scx_sfs reads it only there)
#   SYSTEMD_DIR  where the unit goes (PREFIX/lib/systemd/system where systemd
#                looks there, else SYSCONFDIR/systemd/system)
#   DESTDIR      put before all of these, to build a package; then nothing on
#                this machine is touched outside of it
#   BUILD_DIR    where the programs were built (userspace/target/release)
#
# Both actions may be repeated. Options that were edited are never overwritten
# or removed.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(dirname -- "$here")

PREFIX=${PREFIX:-/usr/local}
SYSCONFDIR=${SYSCONFDIR:-/etc}
DESTDIR=${DESTDIR:-}
BUILD_DIR=${BUILD_DIR:-${CARGO_TARGET_DIR:-$root/userspace/target}/release}

case $PREFIX in
/usr | /usr/local) SYSTEMD_DIR=${SYSTEMD_DIR:-$PREFIX/lib/systemd/system} ;;
*) SYSTEMD_DIR=${SYSTEMD_DIR:-$SYSCONFDIR/systemd/system} ;;
esac

programs='scx_sfs sfs_advise faasbench sfs_waste'
unit=scx_sfs.service
bindir=$PREFIX/bin
docdir=$PREFIX/share/doc/scx_sfs
options=$SYSCONFDIR/default/scx_sfs
configuration=$SYSCONFDIR/scx_sfs/config.toml

die() {
	echo "install.sh: $*" >&2
	exit 1
}

# The unit names these paths, and systemd and sed have ideas about some
# characters.
check_path() {
	case $2 in
	/*) ;;
	*) die "$1 must be an absolute path, not '$2'." ;;
	esac
	case $2 in
	*[!A-Za-z0-9/._+-]*) die "$1 must have only letters, digits and / . _ + - in it, not '$2'." ;;
	esac
}

check_paths() {
	check_path PREFIX "$PREFIX"
	check_path SYSCONFDIR "$SYSCONFDIR"
	check_path SYSTEMD_DIR "$SYSTEMD_DIR"
	case $PREFIX/ in
	/home/* | /root/* | /run/user/* | /tmp/* | /var/tmp/*)
		die "PREFIX must not be '$PREFIX': the service cannot see that directory."
		;;
	esac
}

check_built() {
	for program in $programs; do
		[ -x "$BUILD_DIR/$program" ] || die "$BUILD_DIR/$program is not built: run make first."
	done
	for document in licences.txt scx_sfs.cdx.json sfs_advise.cdx.json faasbench.cdx.json \
		sfs_waste.cdx.json; do
		[ -s "$BUILD_DIR/$document" ] || die "$BUILD_DIR/$document is not there: run make first."
	done
	[ -d "$BUILD_DIR/share" ] || die "$BUILD_DIR/share is not there: run make first."
}

# put MODE SOURCE PATH: installs one file.
put() {
	dir=$DESTDIR$(dirname -- "$3")
	if ! mkdir -p -- "$dir" 2>/dev/null || ! [ -w "$dir" ]; then
		die "$dir is not writable: run as root, or set PREFIX or DESTDIR."
	fi
	install -m "$1" -- "$2" "$DESTDIR$3"
	echo "installed $DESTDIR$3"
}

remove() {
	[ -e "$DESTDIR$1" ] || return 0
	rm -f -- "$DESTDIR$1" || die "$DESTDIR$1 cannot be removed: run as root."
	echo "removed $DESTDIR$1"
}

put_unit() {
	generated=$(mktemp)
	trap 'rm -f -- "$generated"' EXIT
	sed -e "s|@BINDIR@|$bindir|g" -e "s|@DOCDIR@|$docdir|g" -e "s|@SYSCONFDIR@|$SYSCONFDIR|g" \
		"$here/$unit.in" >"$generated"
	put 644 "$generated" "$SYSTEMD_DIR/$unit"
}

# put_kept SOURCE PATH NEW: installs a file that people edit, unless it exists;
# NEW is where its text as delivered is.
put_kept() {
	if [ -e "$DESTDIR$2" ] || [ -L "$DESTDIR$2" ]; then
		cmp -s "$1" "$DESTDIR$2" ||
			echo "kept      $DESTDIR$2 (the new one is $3)"
		return 0
	fi
	put 644 "$1" "$2"
}

# remove_kept SOURCE PATH: removes such a file, unless it was edited.
remove_kept() {
	[ -e "$DESTDIR$2" ] || return 0
	if cmp -s "$1" "$DESTDIR$2"; then
		remove "$2"
	else
		echo "kept    $DESTDIR$2 (it was edited)"
	fi
}

# Man pages, completions, examples and the page of options, which the program itself has written.
put_share() {
	(cd "$BUILD_DIR/share" && find . -type f | LC_ALL=C sort) | while IFS= read -r file; do
		put 644 "$BUILD_DIR/share/$file" "$PREFIX/share/${file#./}"
	done
}

remove_share() {
	share=$PREFIX/share
	for file in "$DESTDIR$share"/man/man8/scx_sfs*.8 "$DESTDIR$docdir"/examples/*.toml \
		"$DESTDIR$docdir/options.md" \
		"$DESTDIR$share"/bash-completion/completions/scx_sfs \
		"$DESTDIR$share"/zsh/site-functions/_scx_sfs \
		"$DESTDIR$share"/fish/vendor_completions.d/scx_sfs.fish; do
		remove "${file#"$DESTDIR"}"
	done
	rmdir -- "$DESTDIR$docdir/examples" 2>/dev/null || true
}

# Whether the systemd that runs this machine is concerned.
systemd_is_live() {
	[ -z "$DESTDIR" ] && [ -d /run/systemd/system ]
}

do_install() {
	check_built
	for program in $programs; do
		put 755 "$BUILD_DIR/$program" "$bindir/$program"
	done
	put 644 "$root/LICENSE" "$docdir/LICENSE"
	put 644 "$BUILD_DIR/licences.txt" "$docdir/licences.txt"
	for program in $programs; do
		put 644 "$BUILD_DIR/$program.cdx.json" "$docdir/$program.cdx.json"
	done
	put 644 "$here/README.md" "$docdir/service.md"
	put 644 "$root/docs/runbook.md" "$docdir/runbook.md"
	for file in dashboard.json alerts.yml; do
		put 644 "$here/monitoring/$file" "$docdir/monitoring/$file"
	done
	put 644 "$root/docs/monitoring.md" "$docdir/monitoring.md"
	put 644 "$here/scx_sfs.default" "$docdir/scx_sfs.default"
	put_kept "$here/scx_sfs.default" "$options" "$docdir/scx_sfs.default"
	put_kept "$here/config.toml" "$configuration" "$docdir/examples/config.toml"
	put_share
	put_unit
	if systemd_is_live; then
		systemctl daemon-reload
	fi
}

do_uninstall() {
	if systemd_is_live && [ -e "$SYSTEMD_DIR/$unit" ]; then
		systemctl --quiet disable --now "$unit"
	fi
	for program in $programs; do
		remove "$bindir/$program"
	done
	for document in LICENSE licences.txt service.md runbook.md monitoring.md scx_sfs.default \
		monitoring/dashboard.json monitoring/alerts.yml; do
		remove "$docdir/$document"
	done
	for program in $programs; do
		remove "$docdir/$program.cdx.json"
	done
	remove_share
	rmdir -- "$DESTDIR$docdir/monitoring" "$DESTDIR$docdir" 2>/dev/null || true
	remove_kept "$here/scx_sfs.default" "$options"
	remove_kept "$here/config.toml" "$configuration"
	rmdir -- "$DESTDIR$SYSCONFDIR/scx_sfs" 2>/dev/null || true
	remove "$SYSTEMD_DIR/$unit"
	if systemd_is_live; then
		systemctl daemon-reload
	fi
}

[ $# -le 1 ] || die "too many arguments; usage: install.sh [install|uninstall]."
action=${1:-install}
case $action in
install | uninstall) ;;
*) die "'$action' is neither install nor uninstall." ;;
esac
check_paths
"do_$action"
