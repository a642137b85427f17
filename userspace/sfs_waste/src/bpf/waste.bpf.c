/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reports to user space which thread begins to wait for a CPU, which gets one, and which
 * CPUs idle, under any scheduler. User space evaluates these events.
 */
#include <scx/common.bpf.h>
#include "intf.h"

char _license[] SEC("license") = "GPL";

/* Only for its type: the bindings contain the types that the program uses. */
const volatile struct sfs_waste_event *type_of_event __attribute__((unused));

/* Number of levels of control groups searched for a quota. */
#define GROUP_LEVELS 16

/* Quota of a group without one. */
#define NO_QUOTA (~0ULL)

/* Below this: real-time and deadline tasks, which have their own scheduling classes. */
#define MAX_RT_PRIO 100

/* Priority of a task with nice value 0; higher values are nicer. */
#define DEFAULT_PRIO 120

#define PF_KTHREAD   0x00200000

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* the loader sets it */
} events SEC(".maps");

/* Start of the softirq that the CPU runs. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} softirq_starts SEC(".maps");

/* Events lost for lack of room. */
u64 lost;

/* The loader switches it on and off. */
bool watching;

/* Return true if @p may have to wait because its group has used up its quota. */
static bool may_be_throttled(struct task_struct *p)
{
	struct task_group *group = BPF_CORE_READ(p, sched_task_group);
	int level;

	bpf_for(level, 0, GROUP_LEVELS) {
		if (!group)
			return false;
		if (BPF_CORE_READ(group, cfs_bandwidth.quota) != NO_QUOTA)
			return true;
		group = BPF_CORE_READ(group, parent);
	}
	return true;
}

/* Return true if @p should run as soon as it has a CPU. */
static bool should_run(struct task_struct *p)
{
	return p->pid && p->prio >= MAX_RT_PRIO && !may_be_throttled(p);
}

/* Return a small field of @p's, as wide as the kernel has it. */
#define small_field(p, field) \
	({ \
		u64 value = 0; \
		u32 size = bpf_core_field_size((p)->field); \
\
		if (size <= sizeof(value)) \
			bpf_probe_read_kernel(&value, size, \
					      (void *)(p) + bpf_core_field_offset((p)->field)); \
		value; \
	})

/*
 * From 7.2 on the kernel disables the migration of the current task around this program too. A task
 * that pins itself to another CPU would seem to wait for the one that it leaves. So this is the
 * least number of such sections that a task had when it left its CPU, 0 or 1. A CPU that
 * overwrites a smaller number of another one is corrected at the next switch.
 */
static u32 own_sections = ~0U;

static void count_own_sections(struct task_struct *current)
{
	if (current->migration_disabled < own_sections)
		own_sections = current->migration_disabled;
}

/* Return true if @p is in a section that disables migration. */
static bool is_in_section(struct task_struct *p)
{
	u32 own = bpf_get_current_task_btf() == p && own_sections != ~0U ? own_sections : 0;

	return p->migration_disabled > own;
}

/* Note the CPUs that @p may use. A section that disables migration leaves the mask. */
static void note_cpus(struct sfs_waste_event *event, struct task_struct *p)
{
	u32 cpu = BPF_CORE_READ(p, thread_info.cpu);
	int word;

	if (is_in_section(p)) {
		bpf_for(word, 0, SFS_WASTE_CPU_WORDS)
			event->cpus[word] = cpu / 64 == word ? 1ULL << (cpu % 64) : 0;
		return;
	}
	bpf_probe_read_kernel(event->cpus, sizeof(event->cpus), p->cpus_ptr);
}

static struct sfs_waste_event *new_event(void)
{
	struct sfs_waste_event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

	if (!event) {
		__sync_fetch_and_add(&lost, 1);
		return NULL;
	}
	event->at_ns = bpf_ktime_get_ns();
	event->cpu = bpf_get_smp_processor_id();
	event->waits = SFS_WASTE_NONE;
	event->runs = SFS_WASTE_NONE;
	event->flags = 0;
	event->softirq_ns = 0;
	return event;
}

static void note_waiting(struct sfs_waste_event *event, struct task_struct *p)
{
	event->waits = p->pid;
	if ((p->flags & PF_KTHREAD) && p->prio <= DEFAULT_PRIO)
		event->flags |= SFS_WASTE_KERNEL;
	note_cpus(event, p);
	bpf_probe_read_kernel(event->comm, sizeof(event->comm), p->comm);
}

static void note_running(struct sfs_waste_event *event, struct task_struct *p)
{
	event->runs = p->pid;
	if (p->pid && p->prio < MAX_RT_PRIO)
		event->flags |= SFS_WASTE_REAL_TIME;
}

/* @p waits for a CPU, from now on or as before, unless it has not left its CPU yet. */
static int waits(struct task_struct *p, u32 flags)
{
	struct sfs_waste_event *event;

	if (!watching || small_field(p, on_cpu) || !should_run(p))
		return 0;
	event = new_event();
	if (!event)
		return 0;
	note_waiting(event, p);
	event->flags |= flags;
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *p)
{
	return waits(p, SFS_WASTE_WOKEN);
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(on_wakeup_new, struct task_struct *p)
{
	return waits(p, SFS_WASTE_WOKEN);
}

/* A task's CPUs have changed; every scheduling class calls this. */
SEC("fexit/set_cpus_allowed_common")
int BPF_PROG(on_affinity, struct task_struct *p)
{
	return small_field(p, on_rq) ? waits(p, 0) : 0;
}

/* A task's scheduling class has changed. If it runs, it continues in the new class. */
SEC("fexit/__sched_setscheduler")
int BPF_PROG(on_class, struct task_struct *p)
{
	struct sfs_waste_event *event;

	if (!watching || !small_field(p, on_cpu))
		return 0;
	event = new_event();
	if (!event)
		return 0;
	event->cpu = BPF_CORE_READ(p, thread_info.cpu);
	note_running(event, p);
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
	return 0;
}

/*
 * A process moves to another control group, whose quota may hold it back from now on, although
 * it was waiting for a CPU before. Its wait until now counts. (Its other threads are not
 * reported: for them an earlier wait continues.)
 */
SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(on_attach, struct cgroup *to, const char *path, struct task_struct *p,
	     bool threadgroup)
{
	struct sfs_waste_event *event;

	if (!watching)
		return 0;
	event = new_event();
	if (!event)
		return 0;
	event->waits = p->pid;
	__builtin_memset(event->cpus, 0, sizeof(event->cpus));
	__builtin_memset(event->comm, 0, sizeof(event->comm));
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	struct sfs_waste_event *event;

	if (!watching)
		return 0;
	count_own_sections(prev);
	event = new_event();
	if (!event)
		return 0;
	note_running(event, next);
	if ((preempt || !prev_state) && should_run(prev))
		note_waiting(event, prev);
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
	return 0;
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(on_softirq_entry, unsigned int vector)
{
	u64 *start = bpf_map_lookup_elem(&softirq_starts, &(u32){ 0 });

	if (start)
		*start = watching ? bpf_ktime_get_ns() : 0;
	return 0;
}

/* No scheduler can take the CPU from a softirq (seen: 26 ms in which RCU freed the tasks that had
 * exited), so the time does not count as a wait. */
SEC("tp_btf/softirq_exit")
int BPF_PROG(on_softirq_exit, unsigned int vector)
{
	u64 *start = bpf_map_lookup_elem(&softirq_starts, &(u32){ 0 });
	struct sfs_waste_event *event;
	u64 length;

	if (!start || !*start || !watching)
		return 0;
	length = bpf_ktime_get_ns() - *start;
	*start = 0;
	if (length < SFS_WASTE_SOFTIRQ_NS)
		return 0;
	event = new_event();
	if (!event)
		return 0;
	event->softirq_ns = length;
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
	return 0;
}
