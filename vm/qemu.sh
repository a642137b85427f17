# shellcheck shell=bash
# How to call QEMU. Sourced after lib.sh.

: "${cache:?lib.sh comes first}"

# Before 8.1 several emulated CPUs crash the guest now and then, and in virtual
# time they share the instruction budget unevenly.
readonly QEMU_MINIMUM=8.1

# qemu_version COMMAND...: prints nothing where it does not run.
qemu_version() {
	"$@" --version 2>/dev/null | sed -n 's/^QEMU emulator version \([0-9.]*\).*/\1/p'
}

# Sets QEMU (the command's first words) to the host's own QEMU if it is new
# enough, else to the one in the cache; fails where there is neither.
qemu_command() {
	local version root loader libraries
	QEMU=(qemu-system-x86_64)
	version=$(qemu_version "${QEMU[@]}") || true
	[[ -n $version ]] && version_at_least "$version" "$QEMU_MINIMUM" && return
	root=$cache/qemu
	# The unpacked QEMU runs with the libraries, and so with the dynamic
	# loader, that were unpacked with it: the host's libc may be older.
	loader=$(find "$root" -name ld-linux-x86-64.so.2 2>/dev/null | head -n 1)
	[[ -n $loader ]] || return 1
	libraries=$root/usr/lib/x86_64-linux-gnu:$root/lib/x86_64-linux-gnu
	export QEMU_MODULE_DIR=$root/usr/lib/x86_64-linux-gnu/qemu
	QEMU=("$loader" --library-path "$libraries" "$root/usr/bin/qemu-system-x86_64"
		-L "$root/usr/share/seabios" -L "$root/usr/share/qemu")
	[[ -n $(qemu_version "${QEMU[@]}") ]]
}
