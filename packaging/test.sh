#!/bin/bash
# Checks install.sh and the service without touching the machine: everything
# goes below a temporary DESTDIR, and the programs are stand-ins.
#
#   packaging/test.sh
#
# The last line reads "N passed, N failed, N skipped"; the exit status is 1 if
# one failed.
set -u

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=scripts/lib/check.sh
source "$here/../scripts/lib/check.sh"

# Nothing of the caller's environment may move the files.
unset PREFIX SYSCONFDIR SYSTEMD_DIR DESTDIR BUILD_DIR CARGO_TARGET_DIR

# A blank, as in the worst of directories.
dest="$work/dest dir"
unit=usr/local/lib/systemd/system/scx_sfs.service

# check_with TOOL NAME COMMAND...: as check, or skips without the tool.
check_with() {
    local tool=$1
    shift
    if command -v "$tool" >/dev/null; then
        check "$@"
    else
        skip "$1" "no $tool here"
    fi
}

# installer ASSIGNMENT... [install|uninstall]: runs install.sh on stand-ins.
installer() {
    env BUILD_DIR="$work/built" DESTDIR="$dest" "${@:1:$#-1}" "$here/install.sh" "${!#}"
}

# fails_with TEXT COMMAND...: fails, with one sentence that has TEXT in it.
fails_with() {
    local text=$1 output
    shift
    if output=$("$@" 2>&1); then
        echo "succeeded: $output"
        return 1
    fi
    echo "$output"
    [[ $output == *"$text"* && $output == *. && $(wc -l <<<"$output") -eq 1 ]]
}

fresh() {
    rm -rf "$work/dest dir" "$work/built"
    mkdir -p "$work/built"
    local program
    for program in scx_sfs faasbench sfs_waste; do
        # shellcheck disable=SC2016 # expanded when the stand-in runs
        printf '#!/bin/sh\necho "%s: $*"\n' "$program" >"$work/built/$program"
        chmod 755 "$work/built/$program"
        echo '{}' >"$work/built/$program.cdx.json"
    done
    echo 'adler2 2.0.1: MIT' >"$work/built/licences.txt"
}

# What is installed: modes, names and contents.
tree() {
    (cd "$dest" && find . -type f -printf '%m %p ' -exec sha256sum {} \; | sort)
}

has_file() {
    local mode=$1 path=$dest/$2
    [[ -f $path && $(stat -c %a "$path") == "$mode" ]]
}

installs_all() {
    fresh
    installer install || return 1
    has_file 755 usr/local/bin/scx_sfs &&
        has_file 755 usr/local/bin/faasbench &&
        has_file 755 usr/local/bin/sfs_waste &&
        has_file 644 usr/local/share/doc/scx_sfs/LICENSE &&
        has_file 644 usr/local/share/doc/scx_sfs/licences.txt &&
        has_file 644 usr/local/share/doc/scx_sfs/faasbench.cdx.json &&
        has_file 644 usr/local/share/doc/scx_sfs/service.md &&
        has_file 644 usr/local/share/doc/scx_sfs/runbook.md &&
        has_file 644 etc/default/scx_sfs &&
        has_file 644 "$unit"
}

substitutes_paths() {
    fresh
    installer install || return 1
    ! grep '@[A-Z]*@' "$dest/$unit" || return 1
    # shellcheck disable=SC2016 # systemd's variable, not ours
    grep -qxF 'ExecStart=/usr/local/bin/scx_sfs $SCX_SFS_FLAGS' "$dest/$unit" &&
        grep -qxF 'EnvironmentFile=-/etc/default/scx_sfs' "$dest/$unit" &&
        ! grep -F "$dest" "$dest/$unit"
}

is_idempotent() {
    fresh
    installer install || return 1
    tree >"$work/first"
    installer install || return 1
    tree | diff "$work/first" -
}

keeps_edited_options() {
    fresh
    installer install || return 1
    echo 'SCX_SFS_FLAGS="--stats 5"' >"$dest/etc/default/scx_sfs"
    installer install | grep -q '^kept .*etc/default/scx_sfs' &&
        grep -q -- '--stats 5' "$dest/etc/default/scx_sfs" &&
        installer uninstall | grep -q '^kept .*etc/default/scx_sfs' &&
        grep -q -- '--stats 5' "$dest/etc/default/scx_sfs"
}

uninstalls_all() {
    fresh
    installer install || return 1
    installer uninstall || return 1
    [[ -z $(find "$dest" ! -type d) && ! -e $dest/usr/local/share/doc/scx_sfs ]]
}

uninstalls_twice() {
    uninstalls_all && [[ -z $(installer uninstall) ]]
}

# An unfinished build installs nothing, not even what is built.
needs_a_build() {
    fresh
    rm "$work/built/faasbench"
    fails_with 'run make first' installer install && [[ ! -e $dest ]]
}

# The licences of what the programs are linked with have to go with them, and the bills.
needs_the_licences() {
    fresh
    rm "$work/built/licences.txt"
    fails_with 'licences.txt is not there: run make first' installer install || return 1
    fresh
    rm "$work/built/sfs_waste.cdx.json"
    fails_with 'sfs_waste.cdx.json is not there' installer install && [[ ! -e $dest ]]
}

honours_prefix() {
    fresh
    installer PREFIX=/usr install || return 1
    has_file 755 usr/bin/scx_sfs && has_file 644 usr/lib/systemd/system/scx_sfs.service
}

honours_other_prefix() {
    fresh
    installer PREFIX=/opt/sfs install || return 1
    grep -q '^ExecStart=/opt/sfs/bin/scx_sfs ' "$dest/etc/systemd/system/scx_sfs.service"
}

honours_systemd_dir() {
    fresh
    installer SYSTEMD_DIR=/units SYSCONFDIR=/conf install || return 1
    grep -qxF 'EnvironmentFile=-/conf/default/scx_sfs' "$dest/units/scx_sfs.service" &&
        has_file 644 conf/default/scx_sfs
}

refuses_bad_paths() {
    fresh
    fails_with 'absolute path' installer PREFIX=usr install &&
        fails_with 'letters, digits' installer PREFIX='/a b' install &&
        fails_with 'letters, digits' installer SYSCONFDIR='/a|b' install &&
        fails_with 'cannot see' installer PREFIX=/home/someone install &&
        fails_with 'neither' installer frobnicate &&
        [[ ! -e $dest ]]
}

# Root may write anywhere, so this needs a directory that nobody can make.
reports_unwritable() {
    fresh
    touch "$dest"
    fails_with 'not writable' installer install
}

# As the generic scx.service starts what /etc/default/scx names.
starts_from_generic_service() {
    fresh
    installer install >/dev/null || return 1
    local output
    # shellcheck disable=SC2016 # expanded by that bash, from its environment
    output=$(env PATH="$dest/usr/local/bin:$PATH" SCX_SCHEDULER=scx_sfs SCX_FLAGS='--stats 1 -v' \
        bash -c 'exec $SCX_SCHEDULER $SCX_FLAGS')
    [[ $output == 'scx_sfs: --stats 1 -v' ]]
}

# The options file is valid for systemd and for a shell.
options_are_shell() {
    # shellcheck disable=SC2016 # expanded by that shell
    sh -euc '. "$1" && [ -z "$SCX_SFS_FLAGS" ]' sh "$here/scx_sfs.default"
}

# systemd wants to see the program, which is not where the unit says.
unit_with_stand_in() {
    fresh
    installer install >/dev/null || return 1
    sed "s|^ExecStart=/usr/local/bin/scx_sfs|ExecStart=$(command -v true)|" "$dest/$unit" \
        >"$work/scx_sfs.service"
}

unit_verifies() {
    local output
    unit_with_stand_in || return 1
    output=$(systemd-analyze --man=no verify "$work/scx_sfs.service" 2>&1) || {
        echo "$output"
        return 1
    }
    echo "$output"
    ! grep -F scx_sfs.service <<<"$output"
}

# In tenths; 100 is the worst. BPF and root cost most of it.
unit_is_hardened() {
    unit_with_stand_in && systemd-analyze --no-pager --offline=yes --threshold=25 security "$work/scx_sfs.service"
}

scripts_pass_shellcheck() {
    cd "$here/.." && shellcheck -x packaging/install.sh packaging/test.sh
}

check 'installs every file with its mode' installs_all
check 'puts the paths into the unit' substitutes_paths
check 'installs the same twice' is_idempotent
check 'keeps options that were edited' keeps_edited_options
check 'uninstalls every file' uninstalls_all
check 'uninstalls twice' uninstalls_twice
check 'installs nothing before make' needs_a_build
check 'installs nothing without the licences' needs_the_licences
check 'honours PREFIX=/usr' honours_prefix
check 'honours a PREFIX that systemd does not search' honours_other_prefix
check 'honours SYSTEMD_DIR and SYSCONFDIR' honours_systemd_dir
check 'refuses paths that the unit cannot have' refuses_bad_paths
check 'says when it may not write' reports_unwritable
check 'starts from the generic scx service' starts_from_generic_service
check 'delivers options that parse' options_are_shell
check_with systemd-analyze 'unit passes systemd-analyze verify' unit_verifies
check_with systemd-analyze 'unit is at most 2.5 exposed' unit_is_hardened
check_with shellcheck 'scripts pass shellcheck' scripts_pass_shellcheck

conclude_checks
