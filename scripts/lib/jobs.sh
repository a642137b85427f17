# shellcheck shell=bash
# Runs rows, some at a time, and says how far it is. Sourced by bench.
#
# bench itself is the parent of every vm/run: it can end them, and they end with
# it, however it ends.

# What runs: its row and since when, by process.
declare -A row_of=() since=()
# Rows that have no clean result, each with why.
troubles=()
rows_done=0

# start_row ROW: boots a VM for it; its results go to a folder of their own.
start_row() {
    local row=$1 run=$STATE/$1.run binary
    local name args file
    local -a options=(--accel "$ACCEL" --cpus "$CPUS" --quiet --timeout "$TIMEOUT" --console "$run/$row.console")
    local -a command=(faasbench run --trace "/${trace##*/}" --scheduler "$(base "$row")" --name "$row" --cpus "$CPUS" --out /out)
    local -a sandbox
    read -ra sandbox <<<"${SANDBOX_ARGS:-}"
    command+=(--sandbox "$SANDBOX" "${sandbox[@]}")
    binary=$(program "$row") args=$(setting ARGS "$row") name=$(base "$row")
    begin "$row"
    [[ -z $KERNEL ]] || options+=(--kernel "$KERNEL")
    [[ -z $binary ]] || options+=(--in "$binary:/bin/$name")
    [[ -z $args ]] || command+=(--scheduler-args "$args")
    for file in $(setting FILES "$row"); do
        options+=(--in "$file")
    done
    setpriv --pdeathsig TERM vm/run "${options[@]}" --env "FAASBENCH_ACCEL=$ACCEL" --in "$FAASBENCH" --in "$SFS_WASTE" \
        --in "$trace:/${trace##*/}" --out "/out:$run" -- "${command[@]}" >"$run/output" 2>"$run/errors" </dev/null &
    row_of[$!]=$row since[$!]=$SECONDS
    [[ -t 2 ]] || say "$row: booting a VM ($CPUS CPUs, $ACCEL) and replaying"
}

# simulate_row ROW
simulate_row() {
    local row=$1 run=$STATE/$1.run status=0 args
    local -a options
    args=$(setting ARGS "$row")
    read -ra options <<<"$args"
    begin "$row"
    {
        "$SFS_SIM" run --trace "$trace" --policy "$(base "$row")" --name "$row" --cpus "$CPUS" --out "$run" "${options[@]}" &&
            "$FAASBENCH" summarize "$run/$row.csv" --trace "$trace" --cpus "$CPUS" --scheduler "$row" \
                --scheduler-version "$("$SFS_SIM" --version)" --scheduler-args "$args" \
                --kernel simulated --accel simulated --output "$run/$row.json"
    } >"$run/output" 2>"$run/errors" || status=$?
    finish_row "$row" "$status" 0
}

# lose_row ROW TEXT: no result came back. The row says so, and is tried again by
# the next run.
lose_row() {
    local row=$1 run=$STATE/$1.run
    "$FAASBENCH" summarize --lost "$2" --trace "$trace" --cpus "$CPUS" --scheduler "$row" \
        --scheduler-version unknown --scheduler-args "$(setting ARGS "$row")" --kernel unknown --accel "$ACCEL" \
        --output "$OUT/$row.json"
    troubles+=("$row (lost): $2")
    cat "$run/output" "$run/errors" >"$OUT/$row.log"
    [[ ! -e $run/$row.console ]] || mv "$run/$row.console" "$OUT/"
    rm -rf "$run"
}

# field ROW NAME: the text that its summary has under the first such name.
field() {
    sed -n "/^ *\"$2\": /{s/^ *\"$2\": \"\(.*\)\",\{0,1\}$/\1/p;q}" "$OUT/$1.json"
}

# finish_row ROW STATUS TOOK: moves what it left to its place. Exit status 3 of
# faasbench is a summary that says what went wrong with the scheduler.
finish_row() {
    local row=$1 status=$2 run=$STATE/$1.run name
    rows_done=$((rows_done + 1))
    clear_line
    if [[ ! -s $run/$row.json ]] || ((status != 0 && status != 3)); then
        name=$(tail -n 1 "$run/errors")
        name=${name//--timeout/TIMEOUT}
        lose_row "$row" "no result came back, exit status $status${name:+: $name}"
        say "$row ($rows_done of $rows_total): no result came back after $3 s; $OUT/$row.log says more"
        return
    fi
    cat "$run/output"
    cat "$run/errors" >&2
    for name in csv log console state json; do
        [[ ! -e $run/$row.$name ]] || mv "$run/$row.$name" "$OUT/"
    done
    settle "$row" "$3"
    note_trouble "$row"
    is_simulated "$row" || say "$row ($rows_done of $rows_total) took $3 s$(time_left)"
}

# note_trouble ROW: remembers it if its scheduler did not load or did not stay.
note_trouble() {
    local status
    status=$(field "$1" status)
    [[ $status == ok ]] || troubles+=("$1 ($status): $(field "$1" detail)")
}

# keep_row ROW: counts one that an earlier run has finished.
keep_row() {
    rows_done=$((rows_done + 1))
    note_trouble "$1"
    say "$1 ($rows_done of $rows_total) is finished from an earlier run"
}

# The mean seconds of the VMs so far, those of earlier runs into this folder included.
mean_took() {
    cat "$STATE"/*.took 2>/dev/null | awk '$1 > 0 { sum += $1; n++ } END { if (n) print int(sum / n) }'
}

# ", about 3 min left", once that can be told.
time_left() {
    local mean left=0 waves pid
    mean=$(mean_took)
    [[ $mean && $rows_done -lt $rows_total ]] || return 0
    waves=$(((live_waiting + jobs - 1) / jobs))
    for pid in "${!row_of[@]}"; do
        left=$((mean - SECONDS + since[$pid] > left ? mean - SECONDS + since[$pid] : left))
    done
    left=$((left + waves * mean))
    if ((left >= 120)); then
        echo ", about $(((left + 30) / 60)) min left"
    else
        echo ", about $left s left"
    fi
}

clear_line() {
    [[ ! -t 2 ]] || printf '\r\033[K' >&2
}

# On a terminal: one line that is written over.
status_line() {
    local pid running=
    [[ -t 2 ]] || return 0
    for pid in "${!row_of[@]}"; do
        running+="${running:+, }${row_of[$pid]} ($((SECONDS - since[$pid])) s)"
    done
    clear_line
    printf 'bench: %d of %d rows done, running %s%s' "$rows_done" "$rows_total" "$running" "$(time_left)" >&2
}

# Waits until a VM has ended, and takes what it left.
reap() {
    local pid status=0
    while :; do
        for pid in "${!row_of[@]}"; do
            if ! kill -0 "$pid" 2>/dev/null; then
                wait "$pid" || status=$?
                local row=${row_of[$pid]} took=$((SECONDS - since[$pid]))
                unset "row_of[$pid]" "since[$pid]"
                finish_row "$row" "$status" "$took"
                return
            fi
        done
        if [[ -t 2 ]]; then
            status_line
            sleep 0.5
        else
            # Which one, and how it went, the next round sees.
            wait -n "${!row_of[@]}" 2>/dev/null || true
        fi
    done
}

# run_rows ROW...: those that have no result yet.
run_rows() {
    local row
    local -a simulated=() live=()
    rows_total=$# live_waiting=0
    for row; do
        if is_finished "$row"; then
            keep_row "$row"
        elif is_simulated "$row"; then
            simulated+=("$row")
        else
            live+=("$row")
        fi
    done
    for row in "${simulated[@]}"; do
        simulate_row "$row"
    done
    live_waiting=${#live[@]}
    for row in "${live[@]}"; do
        while ((${#row_of[@]} >= jobs)); do
            reap
        done
        live_waiting=$((live_waiting - 1))
        start_row "$row"
    done
    while ((${#row_of[@]})); do
        reap
    done
}

# interrupted STATUS: ends the VMs. What they would have measured is lost, what
# is finished is kept.
interrupted() {
    local pid
    trap '' INT TERM HUP
    clear_line
    for pid in "${!row_of[@]}"; do
        kill "$pid" 2>/dev/null || true
    done
    for pid in "${!row_of[@]}"; do
        wait "$pid" 2>/dev/null || true
        forget "${row_of[$pid]}"
    done
    say "interrupted: $rows_done of ${rows_total:-0} rows are finished and kept in $OUT; the same command does the others"
    exit "$1"
}
