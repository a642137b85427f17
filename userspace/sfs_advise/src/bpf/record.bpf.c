/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records the processes that are forked, and who has the CPUs, under any scheduler. A process is
 * reported when its last thread has ended. Nothing of the machine is changed.
 */
#include <scx/common.bpf.h>
#include "intf.h"

char _license[] SEC("license") = "GPL";

/* Only for their types: the bindings contain the types that the program uses. */
const volatile struct sfs_advise_process *type_of_process __attribute__((unused));
const volatile struct sfs_advise_cpu *type_of_cpu __attribute__((unused));

#define TASK_DEAD   0x80
#define PF_KTHREAD  0x00200000
#define MAX_RT_PRIO 100

/* A thread of a recorded process. Only the CPU that it runs on, or that wakes it up, writes it; the
 * kernel orders the two. */
struct thread {
	u64 ran_ns; /* its CPU time when it last left a CPU */
	s32 tgid;
	u32 is_blocked;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384); /* the loader sets it */
	__type(key, s32);           /* tgid */
	__type(value, struct sfs_advise_process);
} processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, s32); /* pid */
	__type(value, struct thread);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct sfs_advise_cpu);
} cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 * 1024 * 1024);
} ended SEC(".maps");

/* The loader sets it: control groups are of interest. */
const volatile bool with_groups;

/* When the recording began. 0: it has not, or it is over. The loader sets it. */
u64 watching_since;

/* Processes that are recorded, since the start. */
u64 begun;

/* Processes that could not be recorded for lack of room, and ended ones that could not be
 * reported. */
u64 missed;
u64 lost;

/* A new process is not recorded if there is no room. */
static void add_process(struct task_struct *parent, struct task_struct *p)
{
	struct sfs_advise_process *fresh, *of_parent;
	struct thread thread = { .tgid = p->tgid };
	s32 tgid = p->tgid, pid = p->pid, parents = parent->tgid;
	static const struct sfs_advise_process none;

	of_parent = bpf_map_lookup_elem(&processes, &parents);
	if (of_parent)
		__sync_fetch_and_add(&of_parent->children, 1);
	if (bpf_map_update_elem(&processes, &tgid, &none, BPF_ANY))
		goto full;
	fresh = bpf_map_lookup_elem(&processes, &tgid);
	if (!fresh)
		goto full;
	fresh->forked_at = bpf_ktime_get_ns();
	fresh->tgid = tgid;
	fresh->threads = 1;
	fresh->runnable = 1;
	fresh->most_threads = 1;
	bpf_probe_read_kernel_str(fresh->comm, sizeof(fresh->comm), p->comm);
	bpf_probe_read_kernel_str(fresh->parent, sizeof(fresh->parent), parent->comm);
	if (!bpf_map_update_elem(&threads, &pid, &thread, BPF_ANY)) {
		__sync_fetch_and_add(&begun, 1);
		return;
	}
	bpf_map_delete_elem(&processes, &tgid);
full:
	__sync_fetch_and_add(&missed, 1);
}

static void add_thread(struct task_struct *p)
{
	struct thread thread = { .tgid = p->tgid };
	struct sfs_advise_process *of;
	s32 tgid = p->tgid, pid = p->pid;

	of = bpf_map_lookup_elem(&processes, &tgid);
	/* A thread without room is not counted; its CPU time is other work. */
	if (!of || bpf_map_update_elem(&threads, &pid, &thread, BPF_ANY))
		return;
	__sync_fetch_and_add(&of->threads, 1);
	__sync_fetch_and_add(&of->runnable, 1);
	if (of->threads > of->most_threads)
		of->most_threads = of->threads;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	if (!watching_since)
		return 0;
	if (child->pid == child->tgid)
		add_process(parent, child);
	else
		add_thread(child);
	return 0;
}

/* scx_sfs names a function by its program when that begins; later names do not count. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *p)
{
	struct sfs_advise_process *of;
	s32 tgid = p->tgid;

	if (!watching_since)
		return 0;
	of = bpf_map_lookup_elem(&processes, &tgid);
	if (!of)
		return 0;
	bpf_probe_read_kernel_str(of->comm, sizeof(of->comm), p->comm);
	bpf_probe_read_kernel_str(of->parent, sizeof(of->parent),
				  BPF_CORE_READ(p, real_parent, comm));
	return 0;
}

/* Note the control groups of @p, from the one below the root on. */
static void note_groups(struct sfs_advise_process *of, struct task_struct *p)
{
	struct cgroup *group = BPF_CORE_READ(p, cgroups, dfl_cgrp), *above;
	int level;

	bpf_for(level, 0, SFS_ADVISE_LEVELS) {
		if (level >= SFS_ADVISE_LEVELS)
			break;
		of->groups[level] = 0;
		if (level + 1 > BPF_CORE_READ(group, level))
			continue;
		if (bpf_core_read(&above, sizeof(above), &group->ancestors[level + 1]))
			continue;
		of->groups[level] = BPF_CORE_READ(above, kn, id);
	}
}

/* The array of phases is full: two neighbours become one, so half of it is free again. */
static void halve(struct sfs_advise_process *of)
{
	int i;

	for (i = 0; i < SFS_ADVISE_PHASES / 2; i++) {
		of->phases[i].cpu_ns = of->phases[2 * i].cpu_ns + of->phases[2 * i + 1].cpu_ns;
		of->phases[i].blocked_ns =
			of->phases[2 * i].blocked_ns + of->phases[2 * i + 1].blocked_ns;
	}
	for (i = SFS_ADVISE_PHASES / 2; i < SFS_ADVISE_PHASES; i++) {
		of->phases[i].cpu_ns = 0;
		of->phases[i].blocked_ns = 0;
	}
	of->phase = SFS_ADVISE_PHASES / 2;
}

static struct sfs_advise_phase *present(struct sfs_advise_process *of)
{
	return &of->phases[of->phase & (SFS_ADVISE_PHASES - 1)];
}

/* Report a process whose last thread, @p, has left its CPU. */
static void report(struct sfs_advise_process *of, struct task_struct *p, u64 now)
{
	s32 tgid = of->tgid;

	of->ended_at = now;
	of->exit_code = BPF_CORE_READ(p, group_leader, exit_code);
	if (bpf_ringbuf_output(&ended, of, sizeof(*of), BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&lost, 1);
	bpf_map_delete_elem(&processes, &tgid);
}

/* @p, a thread of a recorded process, leaves its CPU. */
static void leave(struct task_struct *p, struct thread *thread, bool blocks, bool ends, u64 now)
{
	struct sfs_advise_process *of;
	u64 ran_ns = p->se.sum_exec_runtime;
	s32 tgid = thread->tgid, pid = p->pid;

	of = bpf_map_lookup_elem(&processes, &tgid);
	if (!of)
		return;
	__sync_fetch_and_add(&present(of)->cpu_ns, ran_ns - thread->ran_ns);
	__sync_fetch_and_add(&of->turns, 1);
	thread->ran_ns = ran_ns;
	if (with_groups)
		note_groups(of, p);
	if (ends)
		bpf_map_delete_elem(&threads, &pid);
	else if (blocks)
		thread->is_blocked = 1;
	else
		return;
	if (__sync_fetch_and_add(&of->runnable, -1) == 1)
		of->blocked_at = now;
	if (ends && __sync_fetch_and_add(&of->threads, -1) == 1)
		report(of, p, now);
}

static u64 kind_of(struct task_struct *p)
{
	s32 pid = p->pid;

	if (!pid)
		return SFS_ADVISE_IDLE;
	if ((p->flags & PF_KTHREAD) || p->prio < MAX_RT_PRIO)
		return SFS_ADVISE_KERNEL;
	return bpf_map_lookup_elem(&threads, &pid) ? SFS_ADVISE_FUNCTION : SFS_ADVISE_OTHER;
}

/* A CPU goes from @prev to @next. */
static void note_cpu(struct task_struct *prev, struct task_struct *next, u64 now)
{
	struct sfs_advise_cpu *cpu = bpf_map_lookup_elem(&cpus, &(u32){ 0 });
	u64 kind;

	if (!cpu)
		return;
	if (!cpu->since) {
		/* Nobody else had it since the recording began. */
		cpu->since = watching_since;
		cpu->kind = kind_of(prev);
	}
	kind = cpu->kind;
	if (kind < SFS_ADVISE_KINDS) {
		cpu->ns[kind] += now - cpu->since;
		cpu->turns[kind]++;
	}
	cpu->since = now;
	cpu->kind = kind_of(next);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	u64 now = bpf_ktime_get_ns();
	struct thread *thread;
	s32 pid = prev->pid;

	if (!watching_since)
		return 0;
	note_cpu(prev, next, now);
	thread = bpf_map_lookup_elem(&threads, &pid);
	if (thread)
		leave(prev, thread, !preempt && prev_state, prev_state & TASK_DEAD, now);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *p)
{
	struct sfs_advise_process *of;
	struct thread *thread;
	s32 pid = p->pid, tgid;

	if (!watching_since)
		return 0;
	thread = bpf_map_lookup_elem(&threads, &pid);
	if (!thread || !thread->is_blocked)
		return 0;
	thread->is_blocked = 0;
	tgid = thread->tgid;
	of = bpf_map_lookup_elem(&processes, &tgid);
	if (!of || __sync_fetch_and_add(&of->runnable, 1))
		return 0;
	present(of)->blocked_ns += bpf_ktime_get_ns() - of->blocked_at;
	if (of->phase + 1 < SFS_ADVISE_PHASES)
		of->phase++;
	else
		halve(of);
	return 0;
}
