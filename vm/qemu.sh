# shellcheck shell=bash
# How to call QEMU. Sourced after lib.sh.

: "${cache:?lib.sh comes first}" "${vm_dir:?}"

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

# Prints the library that keeps QEMU's main loop and its emulated CPUs from
# running at the same time (turns.c). Builds it where the cache has none of this
# source; fails where that cannot be done or QEMU does not start with it.
turns_library() {
	local source=$vm_dir/turns.c library
	library=$cache/turns-$(sha256sum "$source" | cut -c 1-16).so
	if [[ ! -e $library ]]; then
		# The dynamic loader only warns of a library that it cannot load.
		if ! gcc -O2 -shared -fPIC -o "$library.$$" "$source" 2>/dev/null ||
			[[ -n $(LD_PRELOAD=$library.$$ "${QEMU[@]}" --version 2>&1 >/dev/null || echo failed) ]]; then
			rm -f "$library.$$"
			return 1
		fi
		mv "$library.$$" "$library"
	fi
	printf '%s\n' "$library"
}
