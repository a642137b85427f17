/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state that the ideas share: tunables, queues, contexts, and how they are
 * looked up. What each piece of shared state may be used for, and which races
 * on it are tolerated, stands beside it.
 */
#ifndef __SFS_STATE_BPF_H
#define __SFS_STATE_BPF_H

/*
 * A BPF global function: the verifier checks it once, for any arguments, and not again at
 * each call with all the states that lead there. This keeps loading short. A global function
 * takes numbers, or a task that the caller got from the kernel or from its own arguments
 * (__arg_trusted; the head of a queue is not trusted, as it may go away), and returns a
 * number. Code that follows a pointer in a task belongs in one: for each such access the
 * kernel searches all names of its types several times, some 4 ms in the emulator.
 * The verifier takes a global function for as sleepable as its callers, and timers of a
 * sleepable program are callers too: hence bpf_rcu_read_lock() around such a pointer.
 */
#define __global_func	__noinline

#define NSEC_PER_MSEC	1000000ULL
#define NSEC_PER_SEC	1000000000ULL

/* task_struct.__state of a task that will not be scheduled again. */
#define SFS_TASK_DEAD	0x00000080

/*
 * Queues. FILTER is first-in-first-out (shard.bpf.h splits it on large machines),
 * FAIR is ordered by virtual time, and so is the queue of what is outside of the
 * sandboxes (prompt.bpf.h). A task that one CPU alone may run waits in that CPU's own
 * queues: in a shared queue its CPU could pass it by for ever (sched-ext/scx #1185), and
 * all others would have to step over it.
 */
#define DSQ_FILTER		0x10000ULL
#define DSQ_FAIR		0x20000ULL
#define DSQ_SYSTEM		0x40000ULL	/* kernel threads, for as long as a kick takes */
#define DSQ_PROMPT		0x50000ULL	/* daemons, the same (prompt.bpf.h) */
#define DSQ_OUTSIDE		0x60000ULL	/* what is no function, instead of FAIR */
#define DSQ_FILTER_CPU(cpu)	(0x100000000ULL | (u32)(cpu))
#define DSQ_FAIR_CPU(cpu)	(0x200000000ULL | (u32)(cpu))
#define DSQ_OUTSIDE_CPU(cpu)	(0x600000000ULL | (u32)(cpu))

/* The number of a queue that all CPUs share, from 1: what is above these bits of its id. */
#define SHARED_SHIFT		16
#define NR_SHARED		8

/*
 * The one clock of this scheduler, CLOCK_MONOTONIC, for all that is compared with what
 * another context has noted: wake-ups, quotas, timers, hints. scx_bpf_now() would be
 * cheaper, but it is another clock, which does not follow NTP
 * (they part by a second a day), and outside of callbacks with a locked run queue it may
 * return the time at which the CPU last had one: in timers and wake-ups from interrupts on
 * idle CPUs it was seen to be 480 ms old (Linux 6.18).
 */
static u64 clock_now(void)
{
	return bpf_ktime_get_ns();
}

/* ------------------------------------------------------------------ tunables
 * Set by the loader before load: all but loader_grace_ns, whatever they begin with here.
 */

/* Length of a FAIR turn; shortened when very many tasks wait. */
const volatile u64 fair_slice_ns = SFS_DEFAULT_FAIR_SLICE_NS;

/* The head of FAIR waits no longer than this, whatever FILTER does. */
const volatile u64 fair_max_wait_ns = SFS_DEFAULT_FAIR_MAX_WAIT_NS;

/* N: arrivals after which the loader is told. */
const volatile u32 iat_window = SFS_DEFAULT_IAT_WINDOW;

/* How long the kernel half waits for the loader's answer to "overload begun"
 * before it applies the rule by itself. */
const volatile u64 loader_grace_ns = 50 * NSEC_PER_MSEC;

/* The loader switches the mode at overload (false: --no-overload). */
const volatile bool overload_enabled;

/* Process id of the loader, whose threads are never starved. */
const volatile s32 loader_tgid;

const volatile u32 nr_cpu_ids = 1;

/* Queues that FILTER is split into (shard.bpf.h). */
const volatile u32 nr_shards = 1;

/* How functions are scheduled (enum sfs_policy_kind). */
const volatile u32 policy;

/* What shares one credit (enum sfs_unit), what begins an invocation (bits of
 * enum sfs_boundary), and what tells a function (enum sfs_identity). */
const volatile u32 unit;
const volatile u32 boundaries;
const volatile u32 identity;

/* Functions are what runs in the cgroups of the map `sandboxes`; otherwise every
 * process that has been started since load. */
const volatile bool only_sandboxes;

/* When schedulers before this one were loaded: what was started then was a function, and is
 * one still, unless the sandboxes tell. */
const volatile struct sfs_span past[SFS_MAX_SPANS];

/* A unit that has slept for so long begins a new invocation (SFS_BOUNDARY_IDLE). */
const volatile u64 idle_boundary_ns = SFS_DEFAULT_IDLE_BOUNDARY_NS;

/* With SFS_BOUNDARY_RECEIVE: the port that a connection must lead to; 0: any, and
 * Unix sockets. */
const volatile u16 receive_port; /* in network byte order */

/* Weight of the cost in the deadline of ranked work, in tenths: how much equal sharing
 * may give an invocation before nothing that comes later goes before it. */
const volatile u32 ageing_tenths = SFS_DEFAULT_AGEING_TENTHS;

/* Log demotions and mode switches to the trace pipe. */
const volatile bool debug;

/*
 * A kernel thread, or the loader, gets a CPU at once when it wakes up, for so
 * much CPU time; if it wants more, it queues with what is no function (DSQ_OUTSIDE), before
 * functions, up to half of each CPU.
 */
#define SYSTEM_SLICE_NS		(4 * NSEC_PER_MSEC)

/*
 * A unit that has served a request, or used up its credit, may use so much more
 * CPU time in FILTER, once, to get to where its next invocation begins: from the
 * wake-up to the return from accept(), say. Enough for an interpreter's event
 * loop, and little beside S.
 */
#define GRACE_NS		(10 * NSEC_PER_MSEC)

/*
 * Two boundaries of different kinds with less CPU time than this between them
 * are one invocation seen twice: fork and exec, a hint and the accept() that it
 * announces, accept() and the first receive.
 */
#define MERGE_NS		(2 * NSEC_PER_MSEC)

/* ------------------------------------------------------- written at run time
 * Single words, written by one side and read by the other without a lock. A
 * reader that sees one old and one new word acts for one decision on a
 * combination that was never asked for, which is as good as deciding a moment
 * earlier or later.
 */

/* By the loader. */
volatile u64 slice_ns = SFS_DEFAULT_SLICE_NS;	/* S */
volatile u64 overload_wait_ns = ~0ULL;		/* O x S */
volatile u64 recover_wait_ns;			/* back to normal */
volatile u32 nr_function_cpus = 1;
volatile u32 mode = SFS_MODE_FILTER;		/* enum sfs_mode; by switch_mode() */
volatile u32 sandbox_generation = 1;		/* counts the changes of `sandboxes` */

volatile u32 default_table = SFS_NO_TABLE;	/* of functions without a rank table */

/* What many CPUs write often, atomically: each on a cache line of its own, since nearly every
 * callback reads the words above. */
static struct {
	/* Clock of processor sharing: CPU time that each present function task would have
	 * got if all of them shared the machine equally. See rank.bpf.h. */
	volatile u64 sharing_clock __attribute__((aligned(64)));
	volatile s64 present __attribute__((aligned(64)));	/* function tasks that want to run */
	volatile s64 demand __attribute__((aligned(64)));	/* on FILTER: those with credit left */
	/* Tasks that wait in each shared queue, whose lock is as contended (queue.bpf.h). */
	volatile s64 waiting[NR_SHARED] __attribute__((aligned(64)));
	volatile u64 unknown;	/* bits of those that a task without a context has been in */
} often;

/* Counts the groups of the CPU controller that have come and gone. */
static volatile u32 groups_generation = 1;

/* By this side; the loader reads them. */
volatile u64 nr_arrivals;	/* atomic: next slot of the IAT map */
volatile u64 credit_used_avg_ns; /* racy moving average: a lost update is a lost sample */
volatile u64 overload_since;	/* when it began; 0: there is none, or the loader has acted */
volatile u64 overload_told_at;	/* by compare-and-swap: when that was last reported */
volatile u64 recovery_told_at;	/* by compare-and-swap: when its end was last reported */

UEI_DEFINE(uei);

/* -------------------------------------------------------------------- tasks */

/* Where a unit's credit is. */
enum invocation_state {
	INV_NONE,	/* no invocation: ran before load, or a kernel thread */
	INV_CREDIT,	/* has credit left: runs in FILTER */
	INV_DEMOTED,	/* credit used up: runs in FAIR */
	INV_GRACE,	/* on the way to its next boundary: runs in FILTER */
	INV_SPENT,	/* has used that up as well: runs in FAIR */
	INV_ENDED,	/* nobody is left in it */
};

/*
 * The invocation that a unit serves, or has served last. It lives where all of
 * the unit find it: in the context of the process's group leader, in that of the
 * thread, or in the sandbox. Those who share it may run at the same time: used_ns
 * is added to atomically, state is changed by compare-and-swap, open by exchange,
 * nr_threads atomically. The other fields are written at a boundary; if two
 * threads meet boundaries at the same time, the unit ends up with the values of
 * either, each of which is an invocation's that has just begun.
 */
struct invocation {
	u64 arrived_at;
	u64 credit_ns;	/* used_ns at which it is demoted, or its grace ends */
	u64 used_ns;
	u64 ended_ns;	/* used_ns at its end */
	u64 function;	/* identity, see intf.h; 0: not known yet */
	u64 service_ns;	/* what a hint says that it will need; 0: nothing */
	u64 born;	/* the sharing clock at arrival */
	u64 slept_at;	/* when a thread of the unit last went to sleep */
	u32 state;	/* enum invocation_state */
	u32 open;	/* begun, and its end has not been counted */
	u32 boundaries;	/* kinds that have been seen for it (enum sfs_boundary) */
	u32 seq;	/* which of the unit's invocations it is */
	u32 graced;	/* has been given its grace */
	u32 counted;	/* it is one of those by which S and overload are judged */
	s32 nr_threads;
};

/* A cgroup in which a function runs. The loader makes and removes it. */
struct sandbox {
	struct invocation inv;	/* used if the unit is the cgroup */
	u64 function;		/* identity of its function, by the loader: the last field */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, SFS_DEFAULT_MAX_SANDBOXES);
	__type(key, u64);	/* the cgroup's id */
	__type(value, struct sandbox);
} sandboxes SEC(".maps");

/* In whose name a task waits or runs. */
enum turn {
	TURN_FAIR,
	TURN_FILTER,
	TURN_RANKED,	/* in FILTER, by rank (rank.bpf.h) */
	TURN_SYSTEM,	/* kernel thread or loader, after a wake-up */
	TURN_PROMPT,	/* daemon, after a wake-up (prompt.bpf.h) */
};

/* A token bucket; its owner says how fast it fills. */
struct token_bucket {
	s64 tokens_ns;		/* less than nothing: a debt */
	u64 filled_at;	/* up to when it has been filled */
};

/*
 * A task's own state. Written under the lock of the run queue that the task is on, except
 * - by relieve_filter() and switch_mode(), which say why they may, and by who else takes a task
 *   out of a queue: release_group(), and put_debtors_back() by undo_waiting();
 * - by what runs as the task itself: the programs of exec, accept and receive, and
 *   at_kernel_exit();
 * - by a hint (apply_hint()), for a task that may run meanwhile. What it races with is a
 *   boundary of the same task: one of two invocations that begin at once is lost.
 */
struct task_ctx {
	struct invocation own;	/* a group leader's or, if that is the unit, a thread's */
	u64 cgroup;		/* in which the task was seen last */
	u64 sandbox;		/* at or above it; 0: none */
	u64 woken_at;		/* last wake-up after the invocation before had ended; 0: none */
	u64 charged_ns;		/* se.sum_exec_runtime that has been charged */
	u64 queued_at;		/* when it was queued; 0 while it need not wait */
	u64 waits_since;	/* first time in a queue after it last ran; 0: it has not waited */
	u64 starved_since;	/* first time in a queue after it last had SERVED_NS; 0: the same */
	u64 served_at_ns;	/* se.sum_exec_runtime at which it has had them */
	u64 turn_used_ns;	/* CPU time since the last wake-up */
	u64 usual_ns;		/* CPU time between two sleeps, on average */
	u64 prompt_ns;		/* of turn_used_ns it may have so much promptly */
	struct token_bucket prompt;	/* what is left of such CPU time */
	u64 filter_used_ns;	/* CPU time in FILTER, not yet charged in FAIR */
	u64 fair_used_ns;	/* CPU time in FAIR while there is such */
	u64 deadline;		/* by rank, on the sharing clock */
	u64 queue_key;		/* the same, but never too far ahead */
	u64 fair_vtime;		/* its virtual time in FAIR, while has_key */
	u64 slice;		/* after which its rank is worse */
	u64 slice_end;		/* CPU time of the invocation at which that is */
	u64 ranked_used_ns;	/* CPU time since it last gave others a turn */
	u64 fair_weight;	/* in FAIR, FAIR_WEIGHT is the default */
	s64 booked_ns;		/* of its tenant's line in FAIR, and not used yet (share.bpf.h) */
	u64 active_group;	/* that counts it as active; 0: none */
	u64 group;		/* of the CPU controller; holds for the address of the kernel's */
	u64 group_address;	/* group and the generation below */
	u64 tenant;		/* whose tokens it uses while it is runnable; 0: nobody's */
	u64 limit;		/* nearest group with a quota; 0: none */
	u64 limit_group;	/* the group, and the generation, for which */
	u32 limit_generation;	/* `limit` holds */
	u32 groups_generation;	/* for which `group` holds */
	u32 active_weight;	/* with which it is counted */
	u32 turn;		/* enum turn */
	u32 seq;		/* invocation that the CPU times above are of */
	u32 rank;
	u32 sandbox_generation;	/* for which `sandbox` holds */
	u32 in_update;		/* update_sandbox() is at work; exchanged */
	u32 queue;		/* number of the shared queue that counts it, or 0; exchanged */
	s32 stopped_on;		/* CPU that it was taken off while runnable, or -1 */
	u32 first_on;		/* 1 + the CPU whose nr_first counts it; 0: none */
	bool fresh;		/* forked, but not seen runnable */
	bool forked;		/* since load, or while a scheduler before was loaded */
	bool found_at_load;	/* the latter, and not woken up since load */
	bool has_left;		/* its invocation, at its end */
	bool seen_by_select;	/* select_cpu() has seen this wake-up */
	bool placed;		/* by select_cpu() in the local queue of an idle CPU */
	bool handed_over;	/* woken up by who is about to sleep (see is_handed_over()) */
	bool slept;		/* since the last receive that began an invocation */
	bool in_demand;		/* counted in often.demand */
	bool present;		/* counted in often.present */
	bool has_key;		/* the kernel has its rank's key in place of its virtual time */
	bool outranked;		/* another rank has been given its CPU */
	bool yielded;
	bool has_kernel_exit;	/* in kernel_exits */
	bool may_be_held;	/* it holds nothing of the kernel's, or nobody can tell */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_ctx);
} task_ctxs SEC(".maps");

/*
 * Return @p's context, or NULL: there was no memory for one when @p was
 * forked. Such a task runs in FAIR, and nothing of it is counted.
 */
static struct task_ctx *try_lookup_task_ctx(struct task_struct *p)
{
	return bpf_task_storage_get(&task_ctxs, p, NULL, 0);
}

/* A task that has waited for so long goes to the front (guard.bpf.h). */
#define GUARD_WAIT_NS		(SFS_WATCHDOG_GUARD_NS / 2)

/* One that has had so much CPU time waits anew. Less is a turn that somebody has cut short: it
 * would wait as long again for the next. */
#define SERVED_NS		NSEC_PER_MSEC

/* Queued anew meanwhile or not: that is in anybody's hands who may change its nice value. */
static bool has_waited_long(const struct task_ctx *tctx, u64 now)
{
	return tctx->starved_since && time_delta(now, tctx->starved_since) > GUARD_WAIT_NS;
}

/* @p is in a queue since @now. */
static void note_starving(const struct task_struct *p, struct task_ctx *tctx, u64 now)
{
	if (tctx->starved_since)
		return;
	tctx->starved_since = now;
	tctx->served_at_ns = p->se.sum_exec_runtime + SERVED_NS;
}

/* @p leaves its CPU; if it is @runnable, it may have had too little. */
static void note_served(const struct task_struct *p, struct task_ctx *tctx, bool runnable)
{
	if (!runnable || p->se.sum_exec_runtime >= tctx->served_at_ns)
		tctx->starved_since = 0;
}

/* --------------------------------------------------------------------- CPUs */

/*
 * Read and written with the CPU's run queue locked: mostly by the CPU itself,
 * but a change to a task that runs there stops and starts it from elsewhere.
 */
struct cpu_ctx {
	u64 fair_served_at;	/* when functions in FAIR last had this CPU, or what was due */
	u64 asked_at;		/* when dispatch() was last called */
	u64 fair_looked_at;	/* when dispatch() last looked in vain for what is due in FAIR */
	u64 outside_used_ns;	/* by what is no function, and not charged to the bucket yet */
	bool next_turn_is_due;	/* dispatch() has chosen one that goes before FILTER */
	bool turn_is_due;	/* FILTER must wait until this turn ends; others read this, too */
	bool is_short_turn;	/* a kernel thread or a daemon has it, or others claim it for one */
	bool may_have_own;	/* something may wait in this CPU's own queues */
	bool dispatch_called;		/* dispatch() has been called since something began to run */
	bool has_run;		/* something, since this scheduler was loaded */
	bool runs;		/* a task of ours has it */
	bool short_turn_is_local;	/* a short turn waits in the local queue, others may be picked */
	bool in_release;	/* cpu_release() is at work */
	bool is_taken;		/* a real-time task has displaced ours; others read this, too */
	u32 shards_seen;	/* counts in the rotation among the other shards */
	u32 nr_first;		/* short turns in its local queue that its tick must look for; atomic */
	/* What prompt turns, and turns from DSQ_OUTSIDE, may have of this CPU. Filled and
	 * emptied by several CPUs at a time without a lock: a lost update is a turn more or
	 * less. */
	struct token_bucket prompt;
} __attribute__((aligned(64)));

/* An array, not a map: nearly every callback looks some of it up, which costs a call into the
 * kernel each time with a map. */
static struct cpu_ctx cpu_ctxs[SFS_MAX_CPUS];

static struct cpu_ctx *lookup_cpu_ctx(s32 cpu)
{
	return &cpu_ctxs[cpu & (SFS_MAX_CPUS - 1)];
}

/*
 * The CPUs that run FAIR work which FILTER may preempt. A CPU sets its own bit
 * and clears it with its run queue locked; whoever wants to preempt it claims
 * it by clearing the bit first. A bit may be stale by one context switch:
 * preempting a CPU that has meanwhile gone on to FILTER work costs it one look
 * at the queues, since dispatch() lets that work keep the CPU.
 */
private(SFS) struct bpf_cpumask __kptr *fair_cpus;

#endif /* __SFS_STATE_BPF_H */
