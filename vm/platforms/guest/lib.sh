# shellcheck shell=sh
# What the platforms' scripts in the guest share. Sourced, not run. The host
# has set FUNCTIONS, WORKERS, CPUS, SCHEDULER and SCHEDULER_ARGS.

# The same hashes in every run, and no compiled code written.
export PYTHONPATH=/platform/packages PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1

tar -x -f /platform.tar -C /
rm /platform.tar

# So that the weights of the functions' cgroups mean something to EEVDF, as
# they do under a container runtime.
echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
mkdir -p /sys/fs/cgroup/functions
echo +cpu >/sys/fs/cgroup/functions/cgroup.subtree_control

# in_cgroup CGROUP COMMAND...: runs it there.
in_cgroup() {
	mkdir -p "/sys/fs/cgroup/$1"
	# shellcheck disable=SC2016 # expanded by the inner shell
	sh -c 'echo $$ >"/sys/fs/cgroup/$0/cgroup.procs" && exec "$@"' "$@"
}

# drive OPTION...: the requests, under the scheduler of this run.
drive() {
	faasbench drive --trace /trace.csv --scheduler "$SCHEDULER" --scheduler-args "$SCHEDULER_ARGS" \
		--cpus "$CPUS" --out /out --warm-up "$WORKERS" --ready-s 300 "$@"
}
