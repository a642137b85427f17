#!/bin/bash
# The first process of a bare machine; usage: boot.sh ROOT RUST UID HOME COMMAND
# Mounts what a machine has into the file system ROOT, and this machine's Rust, then runs
# COMMAND in the folder HOME as the user UID. It runs in namespaces of its own, so that
# nothing stays mounted.
set -euo pipefail
root=$1 rust=$2 uid=$3 home=$4 command=$5
# The kernel ignores SIGTERM for a first process that does not handle it. All other processes
# end with this one.
trap 'exit 143' TERM
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount -o remount,bind,ro "$root/sys"
mount --rbind /dev "$root/dev"
mount --bind -o ro "$rust" "$root/opt/rust"
ip link set lo up 2>/dev/null || true
# In the background, for the trap; bash lets background commands ignore SIGINT and SIGQUIT.
chroot "$root" setpriv --reuid "$uid" --regid "$uid" --clear-groups \
	env -i --default-signal=INT,QUIT HOME="$home" LANG=C.UTF-8 TERM="${TERM:-dumb}" CI="${CI:-}" \
	PATH="/opt/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
	/bin/bash -c "cd $home && $command" &
wait $!
