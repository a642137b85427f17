#!/bin/bash
# The first process of a bare machine; usage: boot.sh ROOT RUST UID HOME COMMAND
# Mounts what a machine has into the file system ROOT, and this machine's Rust, then becomes
# COMMAND in the folder HOME as the user UID. It runs in namespaces of its own, so that
# nothing stays mounted.
set -euo pipefail
root=$1 rust=$2 uid=$3 home=$4 command=$5
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount -o remount,bind,ro "$root/sys"
mount --rbind /dev "$root/dev"
mount --bind -o ro "$rust" "$root/opt/rust"
ip link set lo up 2>/dev/null || true
exec chroot "$root" setpriv --reuid "$uid" --regid "$uid" --clear-groups \
	env -i HOME="$home" LANG=C.UTF-8 TERM="${TERM:-dumb}" CI="${CI:-}" \
	PATH="/opt/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
	/bin/bash -c "cd $home && $command"
