# Makes the tables of scripts/parity of its results, the files SCHEDULER-CPUS.tsv: those of
# one number of CPUs after each other, EEVDF's first. For POSIX awk.
BEGIN { FS = "\t" }

FNR == 1 {
    name = FILENAME
    sub(/.*\//, "", name)
    sub(/\.tsv$/, "", name)
    number = name
    sub(/.*-/, "", number)
    sub(/-[0-9]+$/, "", name)
    if (number != cpus) { finish(); cpus = number }
    column[++columns] = name
    next
}

{
    if (!($1 in seen)) { seen[$1] = 1; row[++rows] = $1 }
    value[$1, columns] = $2
    if ($2 != "-") unit[$1] = $3
    kernel[$1, columns] = $5
    why[$1, columns] = $7
    stamp[$1, columns] = $4
    if ($2 != "-" && !($5 in on)) { on[$5] = 1; kernels = kernels (kernels == "" ? "" : ", ") $5 }
}

END {
    finish()
    printf "%s", legend() body
}

# More is better, always: for a time, EEVDF's is divided by the other one. 0: there is none.
function ratio(what, i) {
    if (value[what, 1] + 0 <= 0 || value[what, i] + 0 <= 0) return 0
    if (kernel[what, 1] != kernel[what, i]) return 0
    return unit[what] == "ops/s" ? value[what, i] / value[what, 1] : value[what, 1] / value[what, i]
}

function rounded(number) { return sprintf(number >= 1000 ? "%.0f" : "%.4g", number) }

function cell(what, i,    r) {
    if (!((what, i) in value)) return ""
    if (value[what, i] == "-") return "none " stamp[what, i]
    r = ratio(what, i)
    if (!r) return "other kernel " stamp[what, i]
    sum[i] += log(r)
    count[i]++
    if (r < 0.95) below[i]++
    return sprintf(r < 0.95 ? "**%.2f** %s" : "%.2f %s", r, stamp[what, i])
}

# Adds the table of the files read since the last one to the text.
function finish(    i, n, what, line, none) {
    if (!columns) return
    line = "| row |"
    for (i = 1; i <= columns; i++) line = line " " column[i] " |"
    body = body "\n### " cpus " CPU" (cpus == 1 ? "" : "s") "\n\n" line "\n|---|"
    for (i = 1; i <= columns; i++) body = body "---|"
    body = body "\n"
    if (column[1] != "eevdf") {
        body = body "\nNothing was measured under EEVDF.\n"
        forget()
        return
    }
    sort_rows()
    for (n = 1; n <= rows; n++) {
        what = row[n]
        if (!((what, 1) in value)) { later = later " " what; continue }
        if (value[what, 1] + 0 <= 0) { without = without " " what; continue }
        line = "| " what " | " rounded(value[what, 1]) " " unit[what] " " stamp[what, 1] " |"
        for (i = 2; i <= columns; i++) {
            line = line " " cell(what, i) " |"
            if ((what, i) in value && value[what, i] == "-") none = none "\n- `" what "` under " column[i] ": " why[what, i]
        }
        body = body line "\n"
    }
    line = "| geometric mean | |"
    for (i = 2; i <= columns; i++) line = line " " (count[i] ? sprintf("%.3f", exp(sum[i] / count[i])) : "") " |"
    body = body line "\n| rows, below 0.95 | |"
    for (i = 2; i <= columns; i++) body = body sprintf(" %d, %d |", count[i], below[i])
    body = body "\n"
    if (none != "") body = body "\nWithout a value:\n" none "\n"
    if (without != "") body = body "\nWithout a value under EEVDF:" without "\n"
    if (later != "") body = body "\nNot measured under EEVDF yet:" later "\n"
    forget()
}

function sort_rows(    i, j, one) {
    for (i = 2; i <= rows; i++) {
        one = row[i]
        for (j = i - 1; j > 0 && row[j] > one; j--) row[j + 1] = row[j]
        row[j + 1] = one
    }
}

function forget() {
    split("", seen); split("", row); split("", value); split("", unit); split("", kernel)
    split("", why); split("", stamp); split("", column)
    split("", sum); split("", count); split("", below)
    columns = rows = 0
    without = later = ""
}

function legend() {
    return "Under EEVDF the value, under the others what it is relative to that: more is better, always (for a time," \
        " EEVDF's is divided by the other one). Below 0.95 is set in bold. The word behind each is the commit of the" \
        " programs that it was measured with. In virtual time, on Linux " kernels ". The geometric means are of as" \
        " many rows as stand below them.\n"
}
