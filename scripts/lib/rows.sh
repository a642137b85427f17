# shellcheck shell=bash
# What a row of the comparison is: a name, a program, options. Sourced by bench,
# which has $RELEASE, $SFS_SIM, $PEERS and die.

# base ROW: its scheduler, without the label.
base() {
    echo "${1%%+*}"
}

# variable PREFIX ROW: the setting of that row, as ARGS_scx_sfs_short for
# scx_sfs+short.
variable() {
    echo "$1_${2//[^A-Za-z0-9]/_}"
}

# setting PREFIX ROW: its value, or nothing.
setting() {
    local name
    name=$(variable "$1" "$2")
    echo "${!name:-}"
}

# is_simulated ROW: whether sfs_sim serves it.
is_simulated() {
    [[ $(base "$1") =~ ^(ideal|srtf|ps|sfs|sfs-no-hybrid|las|gittins|learned|known|mean|mlfq)$ ]]
}

# is_kernel ROW: whether it is a policy of the kernel's own.
is_kernel() {
    [[ $1 =~ ^(eevdf|fifo|rr|batch)$ ]]
}

# program ROW: the path of a sched_ext scheduler's program; nothing for the
# kernel's own schedulers and for simulated ones.
program() {
    local given name
    if is_simulated "$1" || is_kernel "$1"; then
        return
    fi
    given=$(setting PROGRAM "$1") name=$(base "$1")
    if [[ $given ]]; then
        [[ -f $given && -x $given ]] || die "$(variable PROGRAM "$1")=$given is no program"
        echo "$given"
    elif [[ -x $RELEASE/$name ]]; then
        echo "$RELEASE/$name"
    elif [[ -x $PEERS/$name ]]; then
        echo "$PEERS/$name"
    elif command -v "$name"; then
        return
    elif grep -q "^$name " <<<"$(scripts/peers --list)"; then
        die "$name is not built; run make peers, or scripts/peers $name for it alone"
    else
        die "found no program $name, neither in $RELEASE, in $PEERS nor in PATH; build or install it"
    fi
}

# A row with a label that nothing sets apart would be the same row twice.
check_label() {
    local args given
    [[ $1 == *+* ]] || return 0
    args=$(variable ARGS "$1") given=$(variable PROGRAM "$1")
    [[ -v $args || -v $given ]] ||
        die "row $1 has nothing of its own; set its options with $args=\"...\", or its program with $given=FILE"
}

# Files of a row that the guest is to have.
check_files() {
    local file
    for file in $(setting FILES "$1"); do
        [[ $file == ?*:/* ]] || die "$(variable FILES "$1") has '$file'; want HOST:/GUEST"
        [[ -f ${file%%:*} && -r ${file%%:*} ]] || die "cannot read ${file%%:*}, from $(variable FILES "$1")"
    done
}

# check_row ROW: dies with one sentence if it cannot be run.
check_row() {
    [[ $1 =~ ^[a-z0-9_-]+(\+[A-Za-z0-9._-]+)?$ ]] ||
        die "'$1' in SCHEDULERS is no row; want a scheduler, or one with a label as scx_sfs+short"
    if is_simulated "$1"; then
        [[ -x $SFS_SIM ]] || die "$SFS_SIM is not built; run make first"
    elif is_kernel "$(base "$1")"; then
        [[ $1 != *+* && -z $(setting ARGS "$1") ]] ||
            die "$(base "$1") is part of the kernel and takes no options: no label and no $(variable ARGS "$1")"
    elif [[ $1 != scx_* ]]; then
        die "unknown scheduler '$1' in SCHEDULERS; known are eevdf, fifo, rr, batch," \
            "scx_NAME, and simulated ideal, srtf, ps, sfs, sfs-no-hybrid, las, gittins, learned, known, mean and mlfq"
    fi
    check_label "$1"
    check_files "$1"
    program "$1" >/dev/null
}

# check_rows ROW...
check_rows() {
    local row
    local -A seen=() variables=()
    for row; do
        check_row "$row"
        [[ -z ${seen[$row]:-} ]] || die "$row stands in SCHEDULERS twice; a label tells rows apart, as $row+again"
        local name
        name=$(variable ARGS "$row")
        [[ -z ${variables[$name]:-} ]] || die "the rows ${variables[$name]} and $row would share $name; change a label"
        seen[$row]=yes variables[$name]=$row
    done
}
