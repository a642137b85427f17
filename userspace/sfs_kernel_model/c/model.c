/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel half, compiled for the host, and what the model needs to know of it: its maps, and
 * the fields of a task that it reads. The kernel half itself is included as it is.
 */
/* The loader writes the tunables before load, and so does the model. */
#define const

#include <scx/common.bpf.h>
#include <scx/compat.bpf.h>
#include "points.h"
#include <half.h>

#undef __sync_lock_test_and_set
MODEL_BEGIN

/* ------------------------------------------------------------------------ maps */

/* What the model needs of a map, in the types of src/ffi.rs. */
struct model_map {
	void *map;
	u32 type;
	u32 key_size;
	u32 value_size;
	u32 max_entries;
};

#define TYPE(m)  (sizeof(*(m).type) / sizeof(int))
#define MOST(m)  (sizeof(*(m).max_entries) / sizeof(int))
#define KEYED(m) { &(m), TYPE(m), sizeof(*(m).key), sizeof(*(m).value), MOST(m) }

static struct model_map model_maps[] = {
	KEYED(sandboxes),
	KEYED(hints),
	KEYED(functions),
	KEYED(groups),
	KEYED(release_timers),
	KEYED(rank_tables),
	KEYED(function_tables),
	KEYED(stats),
	KEYED(iat_map),
	{ &throttled_groups, TYPE(throttled_groups), 0, sizeof(*throttled_groups.value),
	  MOST(throttled_groups) },
	{ &completions, TYPE(completions), 0, 0, MOST(completions) },
	{ &events, TYPE(events), 0, 0, MOST(events) },
	{ &task_ctxs, TYPE(task_ctxs), sizeof(int), sizeof(struct task_ctx), 0 },
	HALF_MAPS,
};

const struct model_map *model_list_maps(u32 *count)
{
	*count = sizeof(model_maps) / sizeof(model_maps[0]);
	return model_maps;
}

/* --------------------------------------------------------------- cache lines */

/* A variable or a map of the kernel half, in the types of src/lines.rs. */
struct model_variable {
	const char *name;
	const void *place;
	u64 size;
};

#define VARIABLE(v) { #v, (const void *)&(v), sizeof(v) }

static struct model_variable model_variables[] = { HALF_VARIABLES };

const struct model_variable *model_list_variables(u32 *count)
{
	*count = sizeof(model_variables) / sizeof(model_variables[0]);
	return model_variables;
}

/* ------------------------------------------------------------------ user mode */

/* A task is in a system call in an eighth of all stretches of 64 us of its CPU time, drawn by its
 * number, and while it exits. Return registers that say so; no others are read. */
long bpf_task_pt_regs(struct task_struct *task)
{
	static struct pt_regs registers[2];
	u64 stretch = (task->se.sum_exec_runtime >> 16) + ((u64)task->pid << 32);
	bool in_call = (task->flags & PF_EXITING) || stretch * 0x9e3779b97f4a7c15ULL >> 61 == 0;
	struct pt_regs *regs = &registers[in_call];

#if defined(__TARGET_ARCH_arm64)
	regs->syscallno = in_call ? 1 : -1;
#else
	regs->orig_ax = in_call ? 1 : -1;
#endif
	return (long)regs;
}

/* ------------------------------------------------------------------- tunables */

/* The loader asks the kernel for these; the values are those of Linux 6.18. */
static void set_enums(void)
{
	__SCX_DSQ_LOCAL = 0x8000000000000002ULL;
	__SCX_DSQ_LOCAL_ON = 0xc000000000000000ULL;
	__SCX_ENQ_WAKEUP = 1;
	__SCX_ENQ_HEAD = 1 << 4;
	__SCX_ENQ_PREEMPT = 1ULL << 32;
	__SCX_ENQ_REENQ = 1ULL << 40;
	__SCX_ENQ_LAST = 1ULL << 41;
	__SCX_KICK_IDLE = 1;
	__SCX_KICK_PREEMPT = 2;
	__SCX_TASK_QUEUED = 1;
	__SCX_SLICE_DFL = 20 * NSEC_PER_MSEC;
}

/* Options of a machine and of the scheduler, as the loader would set them. */
struct model_options {
	u32 cpus;
	u32 policy;
	u64 slice_ns;
};

void model_tune(const struct model_options *options)
{
	nr_cpu_ids = options->cpus;
	nr_function_cpus = options->cpus;
	policy = options->policy;
	slice_ns = options->slice_ns;
	unit = SFS_UNIT_PROCESS;
	boundaries = SFS_BOUNDARY_FORK | SFS_BOUNDARY_ACCEPT;
	loader_tgid = -1;
	set_enums();
}

/* ----------------------------------------------------------------------- masks */

#define WORDS ((nr_cpu_ids + 63) / 64)

struct bpf_cpumask *bpf_cpumask_create(void)
{
	static struct bpf_cpumask masks[4];
	static u32 used;

	return used < 4 ? &masks[used++] : NULL;
}

void bpf_cpumask_release(struct bpf_cpumask *mask)
{
}

bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *mask)
{
	return cpu < nr_cpu_ids && (mask->bits[cpu / 64] >> (cpu % 64)) & 1;
}

void bpf_cpumask_set_cpu(u32 cpu, struct bpf_cpumask *mask)
{
	mask->cpumask.bits[cpu / 64] |= 1UL << (cpu % 64);
}

void bpf_cpumask_clear_cpu(u32 cpu, struct bpf_cpumask *mask)
{
	mask->cpumask.bits[cpu / 64] &= ~(1UL << (cpu % 64));
}

bool bpf_cpumask_test_and_clear_cpu(u32 cpu, struct bpf_cpumask *mask)
{
	bool was = bpf_cpumask_test_cpu(cpu, &mask->cpumask);

	if (was)
		bpf_cpumask_clear_cpu(cpu, mask);
	return was;
}

bool bpf_cpumask_empty(const struct cpumask *mask)
{
	for (u32 i = 0; i < WORDS; i++)
		if (mask->bits[i])
			return false;
	return true;
}

bool bpf_cpumask_intersects(const struct cpumask *one, const struct cpumask *other)
{
	for (u32 i = 0; i < WORDS; i++)
		if (one->bits[i] & other->bits[i])
			return true;
	return false;
}

/* The first CPU from @from on, around the end, that both masks have; nr_cpu_ids: none. */
static u32 first_from(u32 from, const struct cpumask *one, const struct cpumask *other)
{
	u32 first = from < nr_cpu_ids ? from : 0;

	for (u32 i = 0; i <= WORDS; i++) {
		u32 word = (first / 64 + i) % WORDS;
		unsigned long both = one->bits[word] & other->bits[word];

		if (i == 0)
			both &= ~0UL << (first % 64);
		if (both)
			return word * 64 + __builtin_ctzl(both);
	}
	return nr_cpu_ids;
}

u32 bpf_cpumask_first(const struct cpumask *mask)
{
	return first_from(0, mask, mask);
}

/* lib/cpumask.c: each call on a CPU begins behind the CPU that it returned last. */
u32 bpf_cpumask_any_and_distribute(const struct cpumask *one, const struct cpumask *other)
{
	static u32 last[SFS_MAX_CPUS];
	u32 here = bpf_get_smp_processor_id();
	u32 cpu = first_from(last[here] + 1, one, other);

	if (cpu < nr_cpu_ids)
		last[here] = cpu;
	return cpu;
}

u32 bpf_cpumask_any_distribute(const struct cpumask *mask)
{
	return bpf_cpumask_any_and_distribute(mask, mask);
}

#include "idle.h"

/* --------------------------------------------------------------------- cgroups */

#include "groups.h"

/* ----------------------------------------------------------------------- tasks */

/* Where the model reads and writes a task, in the types of src/ffi.rs. */
struct model_task {
	struct task_struct *task;
	u64 *slice;
	u64 *vtime;
	u64 *cpu_time_ns;
	u32 *weight;
	u32 *state;
	u32 *flags;
	u32 *scx_flags;
	s32 *nr_cpus;
	unsigned long *cpus;
};

void *aligned_alloc(unsigned long, unsigned long);
void free(void *);

/* Bytes of a cache line: the kernel's cache of tasks is aligned to it. */
#define LINE 64UL

/* A task of a process of its own, which may run on all CPUs but isolated ones. NULL: there is no
 * memory. */
struct task_struct *model_new_task(s32 pid, u64 now, struct model_task *fields)
{
	unsigned long size = (sizeof(struct task_struct) + LINE - 1) / LINE * LINE;
	struct task_struct *p = aligned_alloc(LINE, size);

	if (!p)
		return NULL;
	__builtin_memset(p, 0, sizeof(*p));
	p->pid = pid;
	p->tgid = pid;
	p->group_leader = p;
	p->real_parent = p;
	p->start_time = now;
	p->cgroups = &model_root->set;
	p->sched_task_group = &model_root->tg;
	p->scx.weight = 100;
	p->prio = 100 + pid % 40; /* of any nice value */
	p->cpus_ptr = &p->cpus_mask;
	model_housekeeping(p);
	fields->task = p;
	fields->slice = &p->scx.slice;
	fields->vtime = &p->scx.dsq_vtime;
	fields->cpu_time_ns = &p->se.sum_exec_runtime;
	fields->weight = &p->scx.weight;
	fields->state = &p->__state;
	fields->flags = &p->flags;
	fields->scx_flags = &p->scx.flags;
	fields->nr_cpus = &p->nr_cpus_allowed;
	fields->cpus = p->cpus_mask.bits;
	return p;
}

void model_free_task(struct task_struct *p)
{
	free(p);
}

s32 model_pid(const struct task_struct *p)
{
	return p->pid;
}

s32 model_init_task(struct task_struct *p, bool fork)
{
	struct scx_init_task_args args = { .fork = fork,
					   .cgroup = p->sched_task_group->css.cgroup };

	return sfs_init_task(p, &args);
}

void model_exit_task(struct task_struct *p)
{
	struct scx_exit_task_args args = {};

	sfs_exit_task(p, &args);
}

/* scx_dump_state(), of all CPUs and of one task after the other. */
void model_dump(void)
{
	sfs_dump(NULL);
	for (u32 cpu = 0; cpu < nr_cpu_ids; cpu++)
		sfs_dump_cpu(NULL, cpu, false);
}

void model_dump_task(struct task_struct *p)
{
	sfs_dump_task(NULL, p);
}

#include "outside.h"

/* --------------------------------------------- what a recount is compared with */

/* In src/ffi.rs as well. */
#define COUNTED_QUEUES 8

/* How often a task is counted, or how much is counted in all; in the types of src/ffi.rs. */
struct model_counts {
	s64 demand;
	s64 present;
	s64 first;
	s64 waiting[COUNTED_QUEUES];
};

void model_counts_of(struct task_struct *p, struct model_counts *counts)
{
	struct task_ctx *tctx = try_lookup_task_ctx(p);

	__builtin_memset(counts, 0, sizeof(*counts));
	if (!tctx)
		return;
	counts->demand = tctx->in_demand != 0;
	counts->present = tctx->present != 0;
	counts->first = half_is_first(tctx);
	if (half_queue_in(tctx))
		counts->waiting[half_queue_in(tctx)] = 1;
}

void model_counts_in_all(struct model_counts *counts)
{
	counts->demand = half_demand();
	counts->present = half_present();
	counts->first = half_first();
	/* A queue in which a task without a context has waited counts one more, for good. Number 0
	 * stands for the queues that are not counted. */
	for (u32 i = 0; i < COUNTED_QUEUES; i++)
		counts->waiting[i] = half_waiting(i) - (i ? half_unknown(i) : 0);
}

bool model_counts_queues(void)
{
	return HALF_COUNTS_QUEUES;
}

/* The credit of an invocation, in the types of src/ffi.rs. */
struct model_credit {
	u64 used_ns;
	u64 credit_ns;
	u32 number;
	bool has_credit;
};

bool model_credit_of(struct task_struct *p, struct model_credit *credit)
{
	struct task_ctx *tctx = try_lookup_task_ctx(p);

	if (!HALF_CHARGES_AT_ONCE || !tctx || unit != SFS_UNIT_PROCESS || p->pid != p->tgid ||
	    tctx->own.nr_threads != 1 || tctx->own.state == INV_NONE)
		return false;
	credit->used_ns = tctx->own.used_ns;
	credit->credit_ns = tctx->own.credit_ns;
	credit->number = tctx->own.seq;
	credit->has_credit = tctx->own.state == INV_CREDIT || tctx->own.state == INV_GRACE;
	return true;
}

/* ------------------------------------------------------------- plain helpers */

int LINUX_KERNEL_VERSION = KERNEL_VERSION(6, 18, 15);
bool CONFIG_PREEMPT_RCU = true;

/* CO-RE: the model has all fields that the headers have. */
int model_field_exists(const char *what)
{
	return 1;
}

long bpf_probe_read_kernel(void *dst, u32 size, const void *src)
{
	__builtin_memcpy(dst, src, size);
	return 0;
}

long bpf_probe_read_kernel_str(void *dst, u32 size, const void *src)
{
	const char *from = src;
	char *to = dst;
	u32 i;

	for (i = 0; i + 1 < size && from && from[i]; i++)
		to[i] = from[i];
	if (size)
		to[i] = 0;
	return i + 1;
}

void *bpf_kptr_xchg(void *place, void *pointer)
{
	return __sync_lock_test_and_set((void **)place, pointer);
}

void bpf_rcu_read_lock(void)
{
}

void bpf_rcu_read_unlock(void)
{
}

void bpf_preempt_disable(void)
{
}

void bpf_preempt_enable(void)
{
}

void scx_bpf_dump_bstr(char *format, unsigned long long *data, u32 size)
{
}

#include "loader.h"

/* Helpers that kernel halves of the past call, and this one does not: the program keeps what is
 * named here. */
void *model_past_helpers[] = { &scx_bpf_now };

MODEL_END
