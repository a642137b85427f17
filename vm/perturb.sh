# shellcheck shell=bash
# What `run --perturb K` makes different in the machine: nothing that a program may
# rely on, and always the same for the same K. Sourced by run.

# The line that the guest's environment gets, so that programs can vary what they do.
readonly PERTURB_VARIABLE=VM_PERTURB

# draw WHAT BELOW: a number from 0 to BELOW - 1 that K and WHAT determine.
draw() {
	local hash
	hash=$(sha256sum <<<"$perturb $1")
	echo $((16#${hash:0:12} % $2))
}

# More memory moves what the kernel allocates at boot. A whole number of MiB for each
# socket, since they share it evenly.
perturbed_memory() {
	local mib=${mem%?} sockets=1
	[[ $mem == *M ]] || mib=$((mib * 1024))
	[[ -z $topology ]] || sockets=${topology%%x*}
	printf '%sM\n' $((mib + (1 + $(draw memory 64)) * sockets))
}

# perturbed_cpus MODEL: one option for each CPU but the first, which QEMU makes by itself.
# QEMU visits CPUs in the order in which it has made them; the guest numbers them by
# their place in the machine, as always.
perturbed_cpus() {
	local cpu cores=$cpus threads=1
	[[ -z $topology ]] || IFS=x read -r _ cores threads <<<"$topology"
	for ((cpu = 1; cpu < cpus; cpu++)); do
		echo "$(draw "CPU $cpu" 1000000000) $cpu"
	done | sort -n | while read -r _ cpu; do
		printf -- '-device %s-x86_64-cpu,socket-id=%s,core-id=%s,thread-id=%s\n' "$1" \
			$((cpu / (cores * threads))) $((cpu / threads % cores)) $((cpu % threads))
	done
}
