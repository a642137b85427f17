/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reports to user space which task waits, runs, blocks and exits, under any scheduler. Beside
 * scx_sfs it adds what that keeps about each task: it shares the scheduler's map of task
 * contexts, and only reads it. The scheduler itself knows nothing of this and pays nothing
 * while nobody traces.
 */
#include <scx/common.bpf.h>
#include "intf.h"

char _license[] SEC("license") = "GPL";

/* Only for their types: the bindings contain the types that the program uses. */
const volatile struct sfs_trace_switch *type_of_switch __attribute__((unused));
const volatile struct sfs_trace_single *type_of_single __attribute__((unused));
const volatile struct sfs_trace_confined *type_of_confined __attribute__((unused));
const volatile struct sfs_trace_cgroup *type_of_cgroup __attribute__((unused));

/* Below this: real-time and deadline tasks, which have their own scheduling classes. */
#define MAX_RT_PRIO 100

#define PF_KTHREAD  0x00200000

/* enum sfs_unit of the scheduler. */
#define UNIT_CGROUP 1
#define UNIT_THREAD 2

/* ------------------------------------------------- set before load by user space */

/* The scheduler is scx_sfs, and its maps are in place of those below. */
const volatile bool with_contexts;

/* The tasks that share one invocation (enum sfs_unit). */
const volatile u32 unit;

const volatile u32 nr_cpu_ids = 1;

/* Places in struct task_ctx, struct invocation and struct sandbox of the scheduler, in bytes. They
 * come from the type information that it was loaded with, so they fit it whatever version it has. */
const volatile u32 at_turn, at_sandbox, at_own;
const volatile u32 at_arrived, at_function, at_seq, at_open;
const volatile u32 at_shared;

/* -------------------------------------------------------------------------- maps */

struct any_value {
	u8 bytes[8];
};

/* The scheduler's, if there is one: the verifier then knows its size. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct any_value);
} task_ctxs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct any_value);
} sandboxes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* user space sets it */
} events SEC(".maps");

/* What was last reported about the task that runs on a CPU. */
struct seen {
	s32 pid;
	u32 seq;
	u16 turn;
	u16 flags;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct seen);
} seen_tasks SEC(".maps");

/* Events lost for lack of room; any CPU adds to it. */
u64 lost;

/* User space switches it on and off. */
bool watching;

/* ---------------------------------------------------------------------- reporting */

static void *count_lost(void *record)
{
	if (!record)
		__sync_fetch_and_add(&lost, 1);
	return record;
}

#define new_record(type) \
	((struct type *)count_lost(bpf_ringbuf_reserve(&events, sizeof(struct type), 0)))

#define word_at(base, place, type) (*(type *)((void *)(base) + (place)))

/* Return the invocation that @p's unit serves, in the scheduler's maps, or NULL. */
static void *invocation_of(struct task_struct *p, void *tctx)
{
	struct task_struct *leader;
	void *found;
	u64 id;

	if (unit == UNIT_CGROUP) {
		id = word_at(tctx, at_sandbox, u64);
		found = bpf_map_lookup_elem(&sandboxes, &id);
		return found ? found + at_shared : NULL;
	}
	if (unit == UNIT_THREAD || p->pid == p->tgid)
		return tctx + at_own;
	leader = p->group_leader;
	if (!leader)
		return NULL;
	found = bpf_task_storage_get(&task_ctxs, leader, NULL, 0);
	return found ? found + at_own : NULL;
}

static void note_context(struct sfs_trace_task *t, struct task_struct *p)
{
	void *tctx, *inv;

	tctx = bpf_task_storage_get(&task_ctxs, p, NULL, 0);
	if (!tctx)
		return;
	inv = invocation_of(p, tctx);
	t->turn = word_at(tctx, at_turn, u32);
	t->sandbox = word_at(tctx, at_sandbox, u64);
	t->flags |= SFS_TRACE_CONTEXT;
	if (!inv)
		return;
	t->arrived_at = word_at(inv, at_arrived, u64);
	t->function = word_at(inv, at_function, u64);
	t->seq = word_at(inv, at_seq, u32);
	if (word_at(inv, at_open, u32))
		t->flags |= SFS_TRACE_OPEN;
}

static bool is_confined(struct task_struct *p)
{
	return p->nr_cpus_allowed < nr_cpu_ids || p->migration_disabled;
}

static void note_task(struct sfs_trace_task *t, struct task_struct *p)
{
	t->arrived_at = 0;
	t->function = 0;
	t->sandbox = 0;
	t->cgroup = 0;
	t->queue = 0;
	t->pid = p->pid;
	t->tgid = p->tgid;
	t->seq = 0;
	t->turn = 0;
	t->flags = 0;
	*(u64 *)t->comm = *(u64 *)p->comm;
	*(u64 *)(t->comm + 8) = *(u64 *)(p->comm + 8);
	if (!p->pid)
		return;
	if (p->prio < MAX_RT_PRIO)
		t->flags |= SFS_TRACE_REAL_TIME;
	if (p->flags & PF_KTHREAD)
		t->flags |= SFS_TRACE_KERNEL;
	else if (is_confined(p))
		t->flags |= SFS_TRACE_CPUS;
	/* Plain loads: a call of a helper for each would take most of the program's time. */
	t->cgroup = p->cgroups->dfl_cgrp->kn->id;
	if (bpf_core_field_exists(p->scx) && p->scx.dsq)
		t->queue = p->scx.dsq->id;
	if (with_contexts)
		note_context(t, p);
}

/* What may change while @t runs. */
#define CHANGING (SFS_TRACE_REAL_TIME | SFS_TRACE_CONTEXT | SFS_TRACE_OPEN)

static void remember(const struct sfs_trace_task *t)
{
	struct seen *seen = bpf_map_lookup_elem(&seen_tasks, &(u32){ 0 });

	if (!seen)
		return;
	seen->pid = t->pid;
	seen->seq = t->seq;
	seen->turn = t->turn;
	seen->flags = t->flags & CHANGING;
}

/* Report the CPUs of @p, which begins to wait and may not use all. A section that disables
 * migration leaves the mask. */
static void report_cpus(struct task_struct *p)
{
	struct sfs_trace_confined *event;
	u32 cpu = BPF_CORE_READ(p, thread_info.cpu);
	int word;

	if ((p->flags & PF_KTHREAD) || !is_confined(p))
		return;
	event = new_record(sfs_trace_confined);
	if (!event)
		return;
	event->kind = SFS_TRACE_CONFINED;
	event->pid = p->pid;
	event->at_ns = bpf_ktime_get_ns();
	if (p->migration_disabled) {
		bpf_for(word, 0, SFS_TRACE_CPU_WORDS)
			event->cpus[word] = cpu / 64 == word ? 1ULL << (cpu % 64) : 0;
	} else {
		u32 bytes = (nr_cpu_ids + 63) / 64 * 8;

		__builtin_memset(event->cpus, 0, sizeof(event->cpus));
		if (bytes > sizeof(event->cpus))
			bytes = sizeof(event->cpus);
		bpf_probe_read_kernel(event->cpus, bytes, p->cpus_ptr);
	}
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

static void report(struct task_struct *p, u32 kind)
{
	struct sfs_trace_single *event = new_record(sfs_trace_single);

	if (!event)
		return;
	event->kind = kind;
	event->cpu = bpf_get_smp_processor_id();
	note_task(&event->task, p);
	event->at_ns = bpf_ktime_get_ns();
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

/* ------------------------------------------------------------------------- events */

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	struct sfs_trace_switch *event;
	bool runnable = preempt || !prev_state;

	if (!watching)
		return 0;
	if (runnable && prev->pid)
		report_cpus(prev);
	event = new_record(sfs_trace_switch);
	if (!event)
		return 0;
	event->kind = SFS_TRACE_SWITCH;
	event->cpu = bpf_get_smp_processor_id();
	event->left = runnable ? 0 : prev_state;
	event->pad = 0;
	note_task(&event->prev, prev);
	if (!runnable && BPF_CORE_READ_BITFIELD(prev, in_iowait))
		event->prev.flags |= SFS_TRACE_IO;
	if (!runnable && BPF_CORE_READ(prev, signal, live.counter) <= 0)
		event->prev.flags |= SFS_TRACE_LAST;
	note_task(&event->next, next);
	remember(&event->next);
	event->at_ns = bpf_ktime_get_ns();
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
	return 0;
}

static int begins_to_wait(struct task_struct *p, u32 kind)
{
	if (!watching)
		return 0;
	report_cpus(p);
	report(p, kind);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *p)
{
	return begins_to_wait(p, SFS_TRACE_WAKE);
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(on_wakeup_new, struct task_struct *p)
{
	return begins_to_wait(p, SFS_TRACE_NEW);
}

/* Report the current task if it has got another kind of turn, or if its invocation has begun or
 * ended, since it got its CPU. */
static void look(void)
{
	struct seen *seen = bpf_map_lookup_elem(&seen_tasks, &(u32){ 0 });
	struct task_struct *p = bpf_get_current_task_btf();
	struct sfs_trace_task now = {};

	if (!watching || !seen || !p->pid)
		return;
	if (p->prio < MAX_RT_PRIO)
		now.flags |= SFS_TRACE_REAL_TIME;
	if (with_contexts)
		note_context(&now, p);
	now.pid = p->pid;
	now.flags &= CHANGING;
	if (seen->pid == now.pid && seen->seq == now.seq && seen->turn == now.turn &&
	    seen->flags == now.flags)
		return;
	remember(&now);
	report(p, SFS_TRACE_LOOK);
}

/* The end of each pass through the kernel's schedule(): the task that runs may have kept its
 * CPU. */
SEC("tp_btf/sched_exit_tp")
int BPF_PROG(on_schedule)
{
	look();
	return 0;
}

/* A server asks for its next request: it has served the last one, maybe in a single stay on its
 * CPU. */
SEC("fentry/inet_accept")
int BPF_PROG(on_inet_accept)
{
	look();
	return 0;
}

SEC("fentry/unix_accept")
int BPF_PROG(on_unix_accept)
{
	look();
	return 0;
}

/* A task's scheduling class has changed. If it runs, it continues in the new class; if not, user
 * space knows that. */
SEC("fexit/__sched_setscheduler")
int BPF_PROG(on_class, struct task_struct *p)
{
	struct sfs_trace_single *event;

	if (!watching)
		return 0;
	event = new_record(sfs_trace_single);
	if (!event)
		return 0;
	event->kind = SFS_TRACE_LOOK;
	event->cpu = BPF_CORE_READ(p, thread_info.cpu);
	note_task(&event->task, p);
	event->at_ns = bpf_ktime_get_ns();
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
	return 0;
}

/* A scheduler has moved a waiting task to another queue: out of the parked ones, or by the guard,
 * at overload or at a switch of the mode. */
static int moved(unsigned long long *ctx)
{
	struct task_struct *p = (struct task_struct *)ctx[1];
	struct sfs_trace_single *event;
	u64 queue = ctx[2], done = 0;

	if (!watching)
		return 0;
	bpf_get_func_ret(ctx, &done);
	if (!(done & 0xff))
		return 0;
	event = new_record(sfs_trace_single);
	if (!event)
		return 0;
	event->kind = SFS_TRACE_MOVED;
	event->cpu = bpf_get_smp_processor_id();
	note_task(&event->task, p);
	event->task.queue = queue; /* it may have left it again */
	event->at_ns = bpf_ktime_get_ns();
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
	return 0;
}

SEC("fexit/scx_bpf_dsq_move")
int on_move(unsigned long long *ctx)
{
	return moved(ctx);
}

SEC("fexit/scx_bpf_dsq_move_vtime")
int on_move_vtime(unsigned long long *ctx)
{
	return moved(ctx);
}

SEC("tp_btf/cgroup_mkdir")
int BPF_PROG(on_mkdir, struct cgroup *group, const char *path)
{
	struct sfs_trace_cgroup *event;

	if (!watching)
		return 0;
	event = new_record(sfs_trace_cgroup);
	if (!event)
		return 0;
	event->kind = SFS_TRACE_CGROUP;
	event->pad = 0;
	event->id = group->kn->id;
	bpf_probe_read_kernel_str(event->path, sizeof(event->path), path);
	event->at_ns = bpf_ktime_get_ns();
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
	return 0;
}
