# shellcheck shell=bash
# What it means that two builds have come to the same. Sourced, not run.

# What is compared, of those that are built.
readonly PROGRAMS=(scx_sfs faasbench sfs_behaviour sfs_waste)
# The packages whose BPF objects are.
readonly WITH_BPF=(sfs_bpf sfs_waste)

# bpf_object RELEASE PACKAGE: prints the path of the newest BPF object of a package.
bpf_object() {
	local objects
	mapfile -t objects < <(compgen -G "$1/build/$2-*/out/bpf.bpf.o")
	[[ ${#objects[@]} -gt 0 ]] || return 1
	ls -t -- "${objects[@]}" | head -n 1
}

# same_programs RELEASE OTHER: compares what two builds have put into these folders, to the
# byte. Prints what differs.
same_programs() {
	local one other name status=0
	for name in "${PROGRAMS[@]}"; do
		cmp "$1/$name" "$2/$name" || status=1
	done
	for name in "${WITH_BPF[@]}"; do
		one=$(bpf_object "$1" "$name") && other=$(bpf_object "$2" "$name") && cmp "$one" "$other" || {
			echo "the BPF objects of $name differ, or there are none"
			status=1
		}
	done
	return "$status"
}
