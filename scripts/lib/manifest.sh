# shellcheck shell=bash
# What a folder of results was made from, so that a run that was interrupted can
# go on, and results of different settings never stand in one table. Sourced by
# bench.
#
# OUT/.bench/manifest says what all rows have in common: the trace and the number
# of CPUs. OUT/.bench/ROW.manifest says the rest, and is written last: a row has a
# result if and only if it is there.

# digest FILE...: one SHA-256 for all of them.
digest() {
    cat -- "$@" | sha256sum | cut -d ' ' -f 1
}

# What all rows have in common; needs $trace.
common_manifest() {
    printf '%s\n' "trace ${trace##*/} $(digest "$trace")" "cpus $CPUS"
}

# The kernel, the machine and the benchmark: the same for all live rows, so they
# are looked at once.
machine_manifest() {
    local image=$KERNEL
    if [[ ! -f $image ]]; then
        image=$(vm/fetch-kernel ${KERNEL:+"$KERNEL"}) || exit 2
        image+=/vmlinuz
    fi
    printf '%s\n' "kernel $(digest "$image")" "accel $ACCEL" "sandbox $SANDBOX ${SANDBOX_ARGS:-}" "benchmark $(digest "$FAASBENCH" "$SFS_WASTE")" \
        "machine $(digest vm/{run,init,build-initrd,lib.sh,qemu.sh})"
}

# row_manifest ROW: the rest; needs $machine.
row_manifest() {
    local binary=$SFS_SIM file
    if is_simulated "$1"; then
        echo "benchmark $(digest "$FAASBENCH")"
    else
        echo "$machine"
        binary=$(program "$1")
    fi
    echo "program ${binary:+$(digest "$binary")}"
    for file in $(setting FILES "$1"); do
        echo "files ${file#*:} $(digest "${file%%:*}")"
    done
    echo "options $(setting ARGS "$1")"
}

# changed OLD NEW: the words in front of the lines that differ, as "trace, cpus".
changed() {
    local words
    words=$(diff <(echo "$1") <(echo "$2") | sed -n 's/^[<>] \([a-z]*\) .*/\1/p' | sort -u | paste -sd ,)
    echo "${words//,/, }"
}

# forget ROW: removes its results.
forget() {
    rm -rf "$STATE/$1.manifest" "$STATE/$1.took" "${STATE:?}/$1.run" "$OUT/$1".{csv,json,log,console,state}
}

# Removes every row that this program left here; what else is in the folder is
# left alone.
forget_all() {
    local path
    for path in "$STATE"/*.manifest; do
        [[ ! -e $path ]] || forget "$(basename "$path" .manifest)"
    done
}

# keep_common: starts afresh if the folder is about another trace.
keep_common() {
    local new old=
    new=$(common_manifest)
    [[ ! -e $STATE/manifest ]] || old=$(<"$STATE/manifest")
    if [[ ${FRESH:-} ]]; then
        forget_all
    elif [[ $old && $old != "$new" ]]; then
        say "$OUT has results of other settings ($(changed "$old" "$new")): starting afresh"
        forget_all
    fi
    echo "$new" >"$STATE/manifest.new"
    mv "$STATE/manifest.new" "$STATE/manifest"
}

# is_finished ROW: Return success if its results are there and were made from what
# would make them now; says why not if they were made from something else.
is_finished() {
    local new old
    if [[ -e $STATE/$1.manifest && -e $OUT/$1.json ]]; then
        new=$(row_manifest "$1") old=$(<"$STATE/$1.manifest")
        [[ $old != "$new" ]] || return 0
        say "$1 is run again: its $(changed "$old" "$new") changed"
    fi
    return 1
}

# begin ROW: makes the folder of its run, which says from the start what it was
# made from.
begin() {
    forget "$1"
    mkdir "$STATE/$1.run"
    row_manifest "$1" >"$STATE/$1.run/manifest"
}

# settle ROW TOOK: its results are in their places, and count from now on.
settle() {
    echo "$2" >"$STATE/$1.took"
    mv "$STATE/$1.run/manifest" "$STATE/$1.manifest"
    rm -rf "${STATE:?}/$1.run"
}
