#!/bin/bash
# Checks find-clang, setup-host and the Makefile's set-up without touching the machine:
# they see a PATH with nothing but a few ordinary tools and stand-ins for the rest.
#
#   scripts/test.sh
#
# The last line reads "N passed, N failed, N skipped"; the exit status is 1 if
# one failed.
set -u

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib/check.sh
source "$here/lib/check.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Readable for the user that stands in for everybody but root.
chmod 755 "$work"
bin=$work/bin log=$work/log
unset BPF_CLANG

# check_as_root NAME COMMAND...: as check, where this can be tried.
check_as_root() {
    if ((EUID == 0)); then
        check "$@"
    else
        skip "$1" 'only root can try'
    fi
}

# stub NAME [LINE...]: puts a program into the PATH that the scripts see.
stub() {
    local name=$1
    shift
    printf '%s\n' '#!/bin/bash' "$@" >"$bin/$name"
    chmod 755 "$bin/$name"
}

# stub_clang NAME VERSION [TARGETS]
stub_clang() {
    # shellcheck disable=SC2016 # expanded when the stand-in runs
    stub "$1" 'if [[ $1 == --version ]]; then' "echo 'Debian clang version $2.1.7 (3)'" \
        "else [[ '${3:-bpf x86}' == *\$2* ]]; fi"
}

# A host that has all but clang and libraries, and no package manager.
bare_host() {
    rm -rf "$bin" "$log" "$work/scripts" "$work/userspace"
    mkdir -p "$bin" "$work/scripts" "$work/userspace"
    : >"$log"
    chmod 666 "$log"
    cp "$here/find-clang" "$here/setup-host" "$work/scripts/"
    echo 'rust-version = "1.91"' >"$work/userspace/Cargo.toml"
    local tool
    for tool in bash cat grep sed sort; do
        ln -s "$(command -v "$tool")" "$bin/$tool"
    done
    for tool in make gcc shellcheck cpio gzip xz dpkg-deb mkfs.ext4; do
        stub "$tool"
    done
    stub cargo 'echo "cargo 1.95.0 (f2d3ce0bd 2026-03-21)"'
    # shellcheck disable=SC2016 # expanded when the stand-in runs
    stub pkg-config "[[ -e $work/libraries ]]"
    rm -f "$work/libraries"
}

complete_host() {
    bare_host
    stub_clang clang-19 19
    touch "$work/libraries"
}

# stub_apt CLANGS: an apt whose index has these packages of clang, and whose
# installations work.
stub_apt() {
    # shellcheck disable=SC2016 # expanded when the stand-in runs
    stub apt-cache 'if [[ $1 == search ]]; then' "for clang in $1; do echo \"\$clang - compiler\"; done" \
        "else [[ \$2 != clang-* || ' $1 ' == *\" \$2 \"* ]]; fi"
    # shellcheck disable=SC2016 # expanded when the stand-in runs
    stub apt-get "echo \"apt-get \$*\" >>$log" 'case "$*" in *" install "*)' "$(installs)" 'esac'
}

# Lines that make a host complete.
installs() {
    stub_clang clang-new 19
    mv "$bin/clang-new" "$work/clang"
    echo "/bin/cp $work/clang $bin/clang-19; >$work/libraries;;"
}

run() {
    env PATH="$bin" "$work/scripts/$1" "${@:2}"
}

run_as_user() {
    setpriv --reuid 65534 --regid 65534 --clear-groups env PATH="$bin" "$work/scripts/$1" "${@:2}"
}

logged() {
    diff <(printf '%s\n' "$@") "$log"
}

finds_newest_clang() {
    bare_host
    stub_clang clang-18 18
    stub_clang clang-20 20
    stub_clang clang-9 9
    stub_clang clang 19
    stub clang-cpp-21
    [[ $(run find-clang) == clang-20 ]]
}

finds_plain_clang() {
    bare_host
    stub_clang clang 21
    stub_clang clang-20 20
    [[ $(run find-clang) == clang ]]
}

passes_over_clang_without_bpf() {
    bare_host
    stub_clang clang-20 20 x86
    stub_clang clang-19 19
    [[ $(run find-clang) == clang-19 ]]
}

refuses_old_clang() {
    bare_host
    fails_with 'no clang 18 or later' run find-clang || return 1
    stub_clang clang 14
    stub_clang clang-17 17
    fails_with 'no clang 18 or later' run find-clang
}

obeys_bpf_clang() {
    bare_host
    stub_clang clang-20 20
    stub_clang mine 19
    stub_clang old 14
    [[ $(BPF_CLANG=mine run find-clang) == mine ]] &&
        BPF_CLANG=old fails_with 'BPF_CLANG=old is not' run find-clang &&
        BPF_CLANG=none fails_with 'BPF_CLANG=none is not' run find-clang
}

is_silent_when_complete() {
    complete_host
    stub_apt clang-19
    local output
    output=$(run setup-host build test vm 2>&1) || return 1
    echo "$output"
    [[ -z $output && ! -s $log ]]
}

installs_what_is_missing() {
    bare_host
    stub_apt 'clang-16 clang-19 clang-21'
    run setup-host || return 1
    logged 'apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends clang-19 libelf-dev zlib1g-dev'
}

installs_newest_without_19() {
    bare_host
    stub_apt 'clang-18 clang-20 clang-9'
    run setup-host || return 1
    grep -q 'install .* clang-20 ' "$log"
}

updates_an_empty_index_first() {
    bare_host
    stub_apt ''
    run setup-host || return 1
    logged 'apt-get -o DPkg::Lock::Timeout=300 update' \
        'apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends clang-19 libelf-dev zlib1g-dev'
}

updates_a_stale_index_once() {
    bare_host
    stub_apt clang-19
    # shellcheck disable=SC2016 # expanded when the stand-in runs
    stub apt-get "echo \"\${3}\" >>$log" '[[ $3 == update ]]'
    ! run setup-host || return 1
    logged install update install
}

tells_when_clang_is_too_old() {
    bare_host
    stub_apt 'clang-14 clang-15'
    fails_with 'no clang that is recent enough' run setup-host
}

asks_users_to_install() {
    bare_host
    stub_apt clang-19
    local output
    output=$(run_as_user setup-host 2>/dev/null)
    [[ $? -eq 1 && ! -s $log ]] || return 1
    echo "$output"
    [[ $output == 'sudo apt-get install --no-install-recommends clang-19 libelf-dev zlib1g-dev' ]]
}

asks_users_to_update() {
    bare_host
    stub_apt ''
    fails_with 'sudo apt-get update && sudo apt-get install' run_as_user setup-host
}

knows_fedora() {
    bare_host
    rm "$bin"/{make,pkg-config,shellcheck}
    stub dnf "echo \"dnf \$*\" >>$log"
    fails_with 'still missing' run setup-host test || return 1
    logged 'dnf install -y clang elfutils-libelf-devel zlib-devel pkgconf-pkg-config make ShellCheck' || return 1
    fails_with 'sudo dnf install -y clang' run_as_user setup-host
}

knows_arch() {
    bare_host
    stub pacman "echo \"pacman \$*\" >>$log"
    fails_with 'still missing' run setup-host || return 1
    logged 'pacman -S --needed --noconfirm clang libelf zlib'
}

admits_other_hosts() {
    bare_host
    fails_with 'install by other means: clang libelf zlib' run setup-host
}

installs_only_the_sets_asked_for() {
    complete_host
    stub_apt clang-19
    rm "$bin/cpio" "$bin/shellcheck"
    run setup-host || return 1
    [[ ! -s $log ]] || return 1
    fails_with 'still missing' run setup-host vm
    grep -q ' cpio$' "$log"
}

wants_recent_rust() {
    complete_host
    stub cargo 'echo "cargo 1.90.0-nightly (x)"'
    fails_with 'Rust 1.90.0 is too old, 1.91 or later' run setup-host || return 1
    stub cargo 'echo "cargo 1.100.0"'
    run setup-host || return 1
    rm "$bin/cargo"
    fails_with 'no cargo in PATH' run setup-host
}

# As rustup's cargo does without the toolchain that is pinned.
names_the_rust_that_is_missing() {
    complete_host
    stub cargo 'echo "error: toolchain is not installed" >&2' 'exit 1'
    printf '[toolchain]\nchannel = "1.95.0"\n' >"$work/rust-toolchain.toml"
    fails_with 'rustup toolchain install 1.95.0' run setup-host &&
        fails_with 'from 1.91 on' run setup-host
}

# audit_here LINE...: scripts/audit with a cargo-deny that does this.
audit_here() {
    mkdir -p "$work/scripts" "$work/userspace"
    cp "$here/audit" "$work/scripts/"
    stub cargo-deny "$@"
    run audit
}

# Advisories that cannot be had are one line, and what is wrong with others still fails.
audit_says_what_it_could_not_check() {
    bare_host
    # shellcheck disable=SC2016 # expanded when the stand-in runs
    local fetch='[[ "$*" != *fetch* ]] || exit 1' found='[[ "$*" != *advisories* ]] || exit 4' output
    output=$(audit_here "$fetch" 2>&1) || return 1
    [[ $output == *'advisories are NOT checked'* && $(wc -l <<<"$output") -eq 1 ]] || return 1
    # shellcheck disable=SC2016 # expanded when the stand-in runs
    ! audit_here "$fetch" '[[ "$*" != *bans* ]] || exit 2' >/dev/null 2>&1 || return 1
    output=$(audit_here 2>&1) && [[ -z $output ]] && ! audit_here "$found"
}

# scripts/bom, for a program of one crate of the registry, a macro and one of ours.
writes_bills_of_materials() {
    local bill
    bare_host
    mkdir -p "$work/userspace/target/release"
    cp "$here/bom" "$work/scripts/"
    printf '[[package]]\nname = "adler2"\nversion = "2.0.1"\nchecksum = "ab12"\n' >"$work/userspace/Cargo.lock"
    for tool in mktemp rm mkdir mv chmod awk; do ln -sf "$(command -v "$tool")" "$bin/$tool"; done
    # shellcheck disable=SC2016 # expanded when the stand-in runs
    stub cargo 'echo "$4 v0.1.0 (/home/me/$4)|GPL-2.0-only"' 'echo "sfs_text v0.1.0 (/home/me/sfs_text)|GPL-2.0-only"' \
        'echo "adler2 v2.0.1|0BSD/MIT"' 'echo "paste v1.0.15 (proc-macro)|MIT OR Apache-2.0"'
    run bom || return 1
    bill=$(<"$work/userspace/target/release/faasbench.cdx.json")
    echo "$bill"
    [[ $bill == *'"metadata": {"component": {"type": "application", "name": "faasbench", "version": "0.1.0"'* &&
        $bill == *'"adler2", "version": "2.0.1", "licenses": [{"expression": "0BSD OR MIT"}], "purl": "pkg:cargo/adler2@2.0.1", "hashes": [{"alg": "SHA-256", "content": "ab12"}]}'* &&
        $bill == *'"paste", "version": "1.0.15"'* && $bill != *home/me* &&
        $(grep -c '"type": "library"' <<<"$bill") -eq 3 ]]
}

# The Makefile, with stand-ins that note which clang they are told for all that its
# commands call but the set-up.
bare_project() {
    bare_host
    stub_apt clang-19
    ln -sf "$(command -v make)" "$bin/make"
    cp "$here/../Makefile" "$work/"
    # shellcheck disable=SC2016 # expanded when the stand-in runs
    local program note='echo "${BPF_CLANG:-none}" >>'"$work/clangs"
    while read -r program; do
        mkdir -p "$work/${program%/*}"
        [[ -e $work/$program ]] || printf '%s\n' '#!/bin/bash' "$note" >"$work/$program"
        chmod 755 "$work/$program"
    done < <(grep -oE '\b(scripts|vm|tests|packaging|userspace/target)/[a-z/._-]+' "$work/Makefile" | sort -u)
    # shellcheck disable=SC2016 # expanded when the stand-in runs
    stub cargo 'if [[ $1 == --version ]]; then echo "cargo 1.95.0 (x)"' "else $note; fi"
    for program in mmdebstrap git stress-ng chrt python3; do
        stub "$program"
    done
    stub cargo-deny "$note"
    : >"$work/clangs"
}

# make_here TARGET [USER]: not as a part of the make that runs these tests.
make_here() {
    setpriv --reuid "${2:-0}" --regid "${2:-0}" --clear-groups \
        env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS PATH="$bin" make "$1"
}

# sets_up_first TARGET: as the first command on a bare machine, it calls nothing before
# clang is there.
sets_up_first() {
    bare_project
    (cd "$work" && make_here "$1") || return 1
    echo "the clangs that its programs were told:" && cat "$work/clangs"
    [[ -s $work/clangs ]] && ! grep -qv '^clang-19$' "$work/clangs"
}

# One command for all that a user's command needs, not one after the other.
asks_once_for_all() {
    bare_project
    rm "$bin/cpio" "$bin/shellcheck"
    local output
    output=$(cd "$work" && make_here test 65534 2>/dev/null)
    [[ $? -eq 2 ]] || return 1
    echo "$output"
    [[ $output == 'sudo apt-get install --no-install-recommends clang-19 libelf-dev zlib1g-dev shellcheck cpio' ]]
}

refuses_unknown_sets() {
    complete_host
    fails_with "'tests' is not one of" run setup-host tests
}

scripts_pass_shellcheck() {
    cd "$here/.." && shellcheck -x scripts/{find-clang,setup-host,cargo-test,test.sh}
}

# tree FILE...: these files of the repository, at their places in another tree.
tree() {
    rm -rf "$work/tree"
    local file
    for file in "$@"; do
        mkdir -p "$work/tree/${file%/*}"
        cp "$here/../$file" "$work/tree/$file"
    done
}

counts_skips() {
    tree scripts/cargo-test userspace/Cargo.toml
    # A test that is run twice is skipped once.
    # shellcheck disable=SC2016 # expanded when the stand-in runs
    printf '%s\n' '#!/bin/bash' 'printf "a::b: no root\na::c: no KVM\na::b: no root\n" >>"$SCX_SFS_SKIPS"' \
        'echo "test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out"' \
        'echo "test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out"' \
        'exit 101' >"$work/tree/cargo"
    chmod 755 "$work/tree/cargo"
    local output status=0
    output=$(CARGO="$work/tree/cargo" "$work/tree/scripts/cargo-test" --workspace) || status=$?
    echo "$output"
    [[ $status -eq 101 && $(tail -n 1 <<<"$output") == '5 passed, 1 failed, 3 skipped' ]] &&
        grep -qx 'skipped a::c: no KVM' <<<"$output"
}

unlisted_skips_fail() {
    local ci
    for ci in '' 0 false; do
        CI=$ci may_skip 'no/such: test' 'no reason' || return 1
    done
    for ci in 1 true; do
        CI=$ci may_skip 'vm/test.sh: kvm' 'no /dev/kvm here' || return 1
        CI=$ci may_skip 'behaviour::any' 'it takes two CPUs' || return 1
        CI=$ci fails_with 'this is not: vm/test.sh: kvm: no KVM' \
            may_skip 'vm/test.sh: kvm' 'no KVM' || return 1
        CI=$ci fails_with 'this is not: no/such: test: no reason' \
            may_skip 'no/such: test' 'no reason' || return 1
    done
}

scripts_that_skip_fail() {
    tree scripts/lib/check.sh scripts/lib/skips.sh tests/skips
    # shellcheck disable=SC2016 # expanded when the script runs
    printf '%s\n' '#!/bin/bash' 'source "${BASH_SOURCE[0]%/*}/lib/check.sh"' \
        'check one true' 'skip two "no reason"' 'conclude_checks' >"$work/tree/scripts/own.sh"
    chmod 755 "$work/tree/scripts/own.sh"
    local output
    output=$(CI='' "$work/tree/scripts/own.sh") || return 1
    [[ $(tail -n 1 <<<"$output") == '1 passed, 0 failed, 1 skipped' ]] || return 1
    output=$(CI=1 "$work/tree/scripts/own.sh") && return 1
    echo "$output"
    [[ $output == *'this is not: scripts/own.sh: two: no reason'* ]] &&
        [[ $(tail -n 1 <<<"$output") == '1 passed, 1 failed, 0 skipped' ]]
}

ci_adds_up() {
    tree .ci/run
    # shellcheck disable=SC2016 # expanded when the stand-in runs
    printf '%s\n' '#!/bin/bash' '[[ $1 == test ]] || exit 0' \
        'echo "test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out"' \
        'echo "3 passed, 0 failed, 2 skipped"' 'echo "CI is $CI"' 'echo "4 passed, 0 failed, 1 skipped"' \
        >"$work/tree/make"
    chmod 755 "$work/tree/make"
    local output
    output=$(CI='' PATH=$work/tree:$PATH "$work/tree/.ci/run") || return 1
    echo "$output"
    [[ $output == *'CI is 1'* && $(tail -n 1 <<<"$output") == '7 passed, 0 failed, 3 skipped' ]]
}

check 'find-clang prefers the newest' finds_newest_clang
check 'find-clang takes a plain clang' finds_plain_clang
check 'find-clang passes over a clang without BPF' passes_over_clang_without_bpf
check 'find-clang refuses what is too old' refuses_old_clang
check 'find-clang obeys BPF_CLANG' obeys_bpf_clang
check 'setup-host is silent when nothing is missing' is_silent_when_complete
check_as_root 'setup-host installs what is missing' installs_what_is_missing
check_as_root 'setup-host installs the newest clang without 19' installs_newest_without_19
check_as_root 'setup-host updates an empty index first' updates_an_empty_index_first
check_as_root 'setup-host updates a stale index once' updates_a_stale_index_once
check 'setup-host tells when the release is too old' tells_when_clang_is_too_old
check_as_root 'setup-host asks users to install' asks_users_to_install
check_as_root 'setup-host asks users to update the index' asks_users_to_update
check_as_root 'setup-host knows Fedora' knows_fedora
check_as_root 'setup-host knows Arch' knows_arch
check 'setup-host admits that it does not know a host' admits_other_hosts
check_as_root 'setup-host installs only the sets asked for' installs_only_the_sets_asked_for
check 'setup-host wants a recent Rust' wants_recent_rust
check 'setup-host refuses unknown sets' refuses_unknown_sets
for target in build demo test test-unit test-vm test-full matrix overhead policies stress bench peers parity paper platforms microbench lint audit; do
    check_as_root "make $target sets up before it builds" sets_up_first "$target"
done
check_as_root 'make asks users once for all that is missing' asks_once_for_all
check 'bom writes bills of materials' writes_bills_of_materials
check 'audit says what it could not check' audit_says_what_it_could_not_check
check 'names the Rust that is missing' names_the_rust_that_is_missing
check 'cargo-test takes what was skipped off what has passed' counts_skips
check 'what is skipped and not listed fails with CI' unlisted_skips_fail
check 'a script that skips something unlisted fails with CI' scripts_that_skip_fail
check 'the count of CI is that of all parts' ci_adds_up
if command -v shellcheck >/dev/null; then
    check 'scripts pass shellcheck' scripts_pass_shellcheck
else
    skip 'scripts pass shellcheck' 'no shellcheck here'
fi

conclude_checks
