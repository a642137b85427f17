/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shared state: tunables, queues, contexts, and functions that look them up. A
 * comment beside each piece says who may use it and which races it tolerates.
 */
#ifndef __SFS_STATE_BPF_H
#define __SFS_STATE_BPF_H

/*
 * A BPF global function: the verifier checks it once, for any arguments, instead of at each
 * call with every state that leads there. This keeps loading short. A global function takes
 * numbers, or a task that the caller got from the kernel or from its own arguments
 * (__arg_trusted; the head of a queue is not trusted, since it may go away), and returns a
 * number. Put code that follows a pointer in a task into one: for each such access the kernel
 * searches all its type names several times, about 4 ms in the emulator.
 * The verifier treats a global function as sleepable if a caller is sleepable, and timers of
 * a sleepable program are callers too. Hence bpf_rcu_read_lock() around such a pointer.
 */
#define __global_func __noinline

#define NSEC_PER_MSEC 1000000ULL
#define NSEC_PER_SEC  1000000000ULL

/* task_struct.__state of a task that will not be scheduled again. */
#define SFS_TASK_DEAD 0x00000080

/*
 * Dispatch queues. FILTER is first-in-first-out (shard.bpf.h splits it on large machines).
 * FAIR and the queue of outside tasks (prompt.bpf.h) are ordered by virtual time. A pinned
 * task waits in a queue of its own CPU: in a shared queue that CPU could pass it by forever
 * (sched-ext/scx #1185), and all other CPUs would have to skip it.
 */
#define DSQ_FILTER           0x10000ULL
#define DSQ_FAIR             0x20000ULL
#define DSQ_SYSTEM           0x40000ULL /* kernel threads, until the kicked CPU comes */
#define DSQ_PROMPT           0x50000ULL /* the same for daemons (prompt.bpf.h) */
#define DSQ_OUTSIDE          0x60000ULL /* tasks that are not functions, instead of FAIR */
#define DSQ_FILTER_CPU(cpu)  (0x100000000ULL | (u32)(cpu))
#define DSQ_FAIR_CPU(cpu)    (0x200000000ULL | (u32)(cpu))
#define DSQ_OUTSIDE_CPU(cpu) (0x600000000ULL | (u32)(cpu))

/* The number of a shared queue, from 1, is its id shifted right by this many bits. */
#define SHARED_SHIFT 16
#define NR_SHARED    8

/*
 * The only clock of this scheduler: CLOCK_MONOTONIC. All times that different contexts
 * compare are on it: wake-ups, quotas, timers, hints. scx_bpf_now() would be cheaper, but it
 * is another clock, which does not follow NTP (the two drift apart by a second a day). In a
 * context that does not lock the run queue it may also return the time of the CPU's last
 * callback that did: in timers and in wake-ups from interrupts on idle CPUs, values 480 ms
 * old were seen (Linux 6.18).
 */
static u64 clock_now(void)
{
	return bpf_ktime_get_ns();
}

/* ------------------------------------------------------------------ tunables
 * The loader sets all of them before load, except loader_grace_ns, whatever their initial
 * values are here.
 */

/* Length of a FAIR turn. Shorter when very many tasks wait. */
const volatile u64 fair_slice_ns = SFS_DEFAULT_FAIR_SLICE_NS;

/* Maximum wait of FAIR's head, regardless of FILTER. */
const volatile u64 fair_max_wait_ns = SFS_DEFAULT_FAIR_MAX_WAIT_NS;

/* N: the loader is notified after each N arrivals. */
const volatile u32 iat_window = SFS_DEFAULT_IAT_WINDOW;

/* Time that the loader has to answer "overload begun". After that the kernel half
 * applies the rule by itself. */
const volatile u64 loader_grace_ns = 50 * NSEC_PER_MSEC;

/* The loader switches the mode at overload (false: --no-overload). */
const volatile bool overload_enabled;

/* Process id of the loader. Its threads never starve. */
const volatile s32 loader_tgid;

const volatile u32 nr_cpu_ids = 1;

/* Number of FILTER queues (shard.bpf.h). */
const volatile u32 nr_shards = 1;

/* How functions are scheduled (enum sfs_policy_kind). */
const volatile u32 policy;

/* The unit that shares one credit (enum sfs_unit), the events that begin an invocation
 * (bits of enum sfs_boundary), and how functions are identified (enum sfs_identity). */
const volatile u32 unit;
const volatile u32 boundaries;
const volatile u32 identity;

/* Only tasks in cgroups of the map `sandboxes` are functions; if false, every process
 * started since load is one. */
const volatile bool only_sandboxes;

/* Times at which earlier schedulers were loaded. A process started then was a function and
 * still is, unless only_sandboxes is set. */
const volatile struct sfs_span past[SFS_MAX_SPANS];

/* A unit begins a new invocation after a sleep of this length (SFS_BOUNDARY_IDLE). */
const volatile u64 idle_boundary_ns = SFS_DEFAULT_IDLE_BOUNDARY_NS;

/* With SFS_BOUNDARY_RECEIVE: remote port of connections that count; 0: any port, and
 * Unix sockets. */
const volatile u16 receive_port; /* in network byte order */

/* Weight of the cost in the deadline of ranked work, in tenths. Once equal sharing would
 * have given an invocation this multiple of its cost, no later one overtakes it. */
const volatile u32 ageing_tenths = SFS_DEFAULT_AGEING_TENTHS;

/* Log demotions and mode switches to the trace pipe. */
const volatile bool debug;

/*
 * A kernel thread, or the loader, gets a CPU at once when it wakes up, for this much CPU
 * time. If it wants more, it queues with other tasks that are not functions (DSQ_OUTSIDE).
 * They go before functions, up to half of each CPU.
 */
#define SYSTEM_SLICE_NS (4 * NSEC_PER_MSEC)

/*
 * Grace: CPU time in FILTER that a unit gets once after it has served a request or used
 * up its credit. It lets the unit reach its next boundary, for example from the wake-up
 * to the return from accept(). Enough for an interpreter's event loop, and little
 * compared with S.
 */
#define GRACE_NS (10 * NSEC_PER_MSEC)

/*
 * Two boundaries of different kinds, with less CPU time than this between them,
 * belong to one invocation: fork and exec, a hint and the accept() that it
 * announces, accept() and the first receive.
 */
#define MERGE_NS (2 * NSEC_PER_MSEC)

/* ------------------------------------------------------- written at run time
 * Single words, written by one side and read by the other without a lock. A
 * reader that sees one old and one new word makes one decision on a combination
 * that nobody set. This is no worse than deciding a moment earlier or later.
 */

/* By the loader. */
volatile u64 slice_ns = SFS_DEFAULT_SLICE_NS; /* S */
volatile u64 overload_wait_ns = ~0ULL;        /* O x S */
volatile u64 recover_wait_ns;                 /* overload ends at this wait */
volatile u32 nr_function_cpus = 1;
volatile u32 mode = SFS_MODE_FILTER; /* enum sfs_mode; by switch_mode() */
volatile u32 sandbox_generation = 1; /* counts changes of `sandboxes` */

volatile u32 default_table = SFS_NO_TABLE; /* for functions without a rank table */
volatile u32 completion_batch = 1;         /* so many unread completions wake up the loader */

/* Words that many CPUs often write, atomically. Each has its own cache line, because nearly
 * every callback reads the words above. */
static struct {
	/* Sharing clock: CPU time that each present function task would have had if all
	 * of them shared the machine equally. See rank.bpf.h. */
	volatile u64 sharing_clock __attribute__((aligned(64)));
	volatile s64 present __attribute__((aligned(64))); /* runnable function tasks */
	volatile s64 demand __attribute__((aligned(64)));  /* on FILTER: those with credit */
	/* Tasks waiting in each shared queue; its lock is as contended (queue.bpf.h). */
	volatile s64 waiting[NR_SHARED] __attribute__((aligned(64)));
	volatile u64 unknown; /* bits of the queues that have held a task without a context */
	/* Next slot of the IAT map; and a racy moving average: a lost update loses one sample. */
	volatile u64 nr_arrivals __attribute__((aligned(64)));
	volatile u64 credit_used_avg_ns;
} often;

/* Counts creations and removals of groups of the CPU controller. */
static volatile u32 groups_generation = 1;

/* By the kernel half; the loader reads them. */
volatile u64 overload_since;   /* start of overload; 0: none, or the loader has acted */
volatile u64 overload_told_at; /* time of the last report of overload; by compare-and-swap */
volatile u64 recovery_told_at; /* the same for its end */

UEI_DEFINE(uei);

/* -------------------------------------------------------------------- tasks */

/* State of a unit's credit. */
enum invocation_state {
	INV_NONE,    /* no invocation: started before load, or a kernel thread */
	INV_CREDIT,  /* credit left: runs in FILTER */
	INV_DEMOTED, /* credit used up: runs in FAIR */
	INV_GRACE,   /* grace until its next boundary: runs in FILTER */
	INV_SPENT,   /* grace also used up: runs in FAIR */
	INV_ENDED,   /* the unit has no tasks left */
};

/*
 * The invocation that a unit serves, or served last. It is stored where all tasks of
 * the unit find it: in the context of the process's group leader, in the context of
 * the thread, or in the sandbox. The tasks that share it may run at the same time:
 * used_ns and nr_threads are changed atomically, state by compare-and-swap, open by
 * exchange. The other fields are written at a boundary. If two threads cross
 * boundaries at the same time, each field gets the value of one of them. Both values
 * are of an invocation that has just begun.
 */
struct invocation {
	u64 arrived_at;
	u64 credit_ns; /* demotion, or end of grace, when used_ns reaches this */
	u64 used_ns;
	u64 ended_ns;   /* used_ns at its end */
	u64 function;   /* identity, see intf.h; 0: not known yet */
	u64 service_ns; /* expected CPU time, by a hint; 0: no such hint */
	u64 born;       /* sharing clock at arrival */
	u64 slept_at;   /* when a thread of the unit last went to sleep */
	u64 slept_ns;   /* used_ns at that time */
	u64 burst_ns;   /* used_ns at its first long sleep, at least 1; 0: it had none yet */
	u64 quiet_at;   /* its end, or the last sleep that may be its end; 0: not known */
	u32 state;      /* enum invocation_state */
	u32 open;       /* begun, and its end is not counted yet */
	u32 boundaries; /* kinds seen for it (enum sfs_boundary) */
	u32 seq;        /* number of this invocation within the unit */
	u32 graced;     /* grace has been given */
	u32 counted;    /* it counts for S and for overload */
	s32 nr_threads;
};

/* A cgroup in which a function runs. The loader adds and removes the entry. */
struct sandbox {
	struct invocation inv; /* if the unit is the cgroup */
	u64 function;          /* identity of its function; set by the loader; last field */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, SFS_DEFAULT_MAX_SANDBOXES);
	__type(key, u64); /* the cgroup's id */
	__type(value, struct sandbox);
} sandboxes SEC(".maps");

/* The queue or rule that a task waits or runs under. */
enum turn {
	TURN_FAIR,
	TURN_FILTER,
	TURN_RANKED, /* in FILTER, by rank (rank.bpf.h) */
	TURN_SYSTEM, /* kernel thread or loader, after a wake-up */
	TURN_PROMPT, /* daemon, after a wake-up (prompt.bpf.h) */
};

/* A token bucket. Its owner sets the rate. */
struct token_bucket {
	s64 tokens_ns; /* negative: a debt */
	u64 filled_at; /* time up to which it is filled */
};

/*
 * Words of struct task_ctx that tell where a task is counted; 0: nowhere. The task's own CPU
 * changes them with the run queue locked. release_group() has no run queue locked: a task that it
 * counts may be queued elsewhere, and counted there, at the same time. So each change is one
 * atomic operation, and who makes it changes the sum. release_group() marks its counts, to take
 * them back if it cannot move the task. A task that is queued in another place keeps them.
 */
#define PROVISIONAL (1ULL << 63)

/* Set @word, if it is 0, to @value. Return true if the caller must count the task. */
static bool begin_count(u64 *word, u64 value)
{
	return !*word && !__sync_val_compare_and_swap(word, 0, value);
}

/* Return what @word was set to, and clear it. If that is not 0, the caller must stop counting. */
static u64 end_count(u64 *word)
{
	return *word ? __sync_lock_test_and_set(word, 0) & ~PROVISIONAL : 0;
}

/* The same, if @word is provisional. */
static u64 take_back_count(u64 *word)
{
	u64 value = *word;

	if (!(value & PROVISIONAL) || __sync_val_compare_and_swap(word, value, 0) != value)
		return 0;
	return value & ~PROVISIONAL;
}

/* The count of @word is provisional no longer. If it has just been taken back, the task is counted
 * at its next wake-up or turn in FAIR. */
static void keep_count(u64 *word)
{
	u64 value = *word;

	if (value & PROVISIONAL)
		__sync_val_compare_and_swap(word, value, value & ~PROVISIONAL);
}

/*
 * A task's own state. Written with the task's run queue locked, except
 * - by relieve_filter(), switch_mode() and release_group(), which move tasks between queues;
 *   see relieve_filter() about the race, and PROVISIONAL;
 * - by programs that run as the task itself: exec, accept, receive, and at_kernel_exit();
 * - by a hint (apply_hint()), while the task may be running. It races with a boundary of
 *   the same task: if two invocations begin at once, one is lost.
 */
struct task_ctx {
	struct invocation own;      /* of the group leader or, if that is the unit, the thread */
	u64 cgroup;                 /* id of the cgroup in which the task was last seen */
	u64 sandbox;                /* id of the sandbox at or above it; 0: none */
	u64 woken_at;               /* last wake-up after the previous invocation ended; 0: none */
	u64 charged_ns;             /* se.sum_exec_runtime charged so far */
	u64 queued_at;              /* time of queueing; 0: it does not have to wait */
	u64 queued_ns;              /* waited in queues for its invocation (boundary.bpf.h) */
	u64 waits_since;            /* first queued at, since it last ran; 0: it has not waited */
	u64 starved_since;          /* first queued at, since it last had SERVED_NS; 0: the same */
	u64 served_at_ns;           /* se.sum_exec_runtime at which it has had SERVED_NS */
	u64 turn_used_ns;           /* CPU time since the last wake-up */
	u64 usual_ns;               /* average CPU time between two sleeps */
	u64 slept_at;               /* when it went to sleep last */
	u64 slept_clock;            /* the same on the sharing clock */
	u64 paid_ns;                /* unit's CPU time that it has slept for (rank.bpf.h) */
	u64 paid_clock;             /* its wake-up after that, on the sharing clock */
	u64 prompt_ns;              /* turn_used_ns up to which its turns are prompt */
	struct token_bucket prompt; /* CPU time left for prompt turns */
	u64 filter_used_ns;         /* CPU time in FILTER that FAIR has not charged yet */
	u64 fair_used_ns;           /* CPU time in FAIR while filter_used_ns is not charged */
	u64 deadline;               /* from its rank, on the sharing clock */
	u64 queue_key;              /* the same, with a limit on how far ahead it is */
	u64 fair_vtime;             /* virtual time in FAIR, while has_key */
	u64 slice;                  /* CPU time after which its rank worsens */
	u64 slice_end;              /* CPU time of the invocation at the end of `slice` */
	u64 ranked_used_ns;         /* ranked CPU time since it last gave way to others */
	u64 taken_ns;               /* CPU time taken from overdue work, not used yet */
	u64 claim_end;              /* charged_ns up to which it keeps the CPU it claimed */
	u64 fair_weight;            /* weight in FAIR; the default is FAIR_WEIGHT */
	u64 exits_at;               /* when at_kernel_exit() has kicked its CPU; 0: nothing does */
	s64 booked_ns;              /* booked in its tenant's line, not used yet (share.bpf.h) */
	u64 active;                 /* what its group counts, see active_group() */
	u64 group;             /* id of its group of the CPU controller; valid for the kernel's */
	u64 group_address;     /* group at this address and the generation below */
	u64 tenant;            /* what counts it while runnable, see tenant() */
	u64 in_demand;         /* not 0: counted in often.demand */
	u64 present;           /* not 0: counted in often.present */
	u64 limit;             /* nearest group with a quota; 0: none */
	u64 limit_group;       /* `limit` is valid for this group */
	u32 limit_generation;  /* and this generation */
	u32 groups_generation; /* `group` is valid for it */
	u32 turn;              /* enum turn */
	u32 left_turn;         /* the turn that was cut short, if it `leaves` */
	u32 seq;               /* invocation of the CPU times above */
	u32 paid_seq;          /* invocation of paid_ns */
	u32 rank;
	u32 sandbox_generation; /* `sandbox` is valid for it */
	u32 in_update;          /* update_sandbox() is running; exchanged */
	u32 queue;              /* the shared queue that counts it: see queue_in(); exchanged */
	u32 queue_changes;      /* makes the values of `queue` differ; atomic */
	s32 stopped_on;         /* CPU that it left while runnable, or -1 */
	u32 first_on;           /* 1 + number of the CPU whose nr_first counts it; 0: none */
	bool fresh;             /* forked, and not runnable yet */
	bool forked;            /* since load, or while an earlier scheduler was loaded */
	bool found_at_load;     /* forked under an earlier scheduler, not woken up since load */
	bool has_left;          /* has left its invocation, at its exit */
	bool chose_idle_cpu;    /* select_cpu() has found an idle CPU for this wake-up */
	bool handed_over;       /* the waker is about to sleep (see is_handed_over()) */
	bool slept;             /* has slept since the last boundary */
	bool mostly_sleeps;     /* at its last wake-up it owed little: see pay_by_sleep() */
	bool has_key;           /* p->scx.dsq_vtime is queue_key, not its virtual time */
	bool outranked;         /* its CPU goes to other ranked work */
	bool leaves;            /* its prompt turn is to leave the kernel (leave.bpf.h) */
	bool yielded;
	bool has_kernel_exit; /* in kernel_exits */
	bool may_be_held;     /* it holds no kernel resources, or this is unknown */
};

/* Return the id of the tenant that counts the task, and whose tokens it uses; 0: none. */
static u64 tenant(const struct task_ctx *tctx)
{
	return tctx->tenant & ~PROVISIONAL;
}

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_ctx);
} task_ctxs SEC(".maps");

/*
 * Return @p's context, or NULL if there was no memory for one when @p was
 * forked. Such a task runs in FAIR, and nothing is counted for it.
 */
static struct task_ctx *try_lookup_task_ctx(struct task_struct *p)
{
	return bpf_task_storage_get(&task_ctxs, p, NULL, 0);
}

/* After this wait a task goes to the front (guard.bpf.h). */
#define GUARD_WAIT_NS (SFS_WATCHDOG_GUARD_NS / 2)

/* A task that has had this much CPU time starts a new wait. Less means that its turn was cut
 * short, and it would wait as long again for the next one. */
#define SERVED_NS NSEC_PER_MSEC

/* A requeue does not restart this wait: anyone who may change the nice value can cause one. */
static bool has_waited_long(const struct task_ctx *tctx, u64 now)
{
	return tctx->starved_since && time_delta(now, tctx->starved_since) > GUARD_WAIT_NS;
}

/* @p is queued at @now. */
static void note_starving(const struct task_struct *p, struct task_ctx *tctx, u64 now)
{
	if (tctx->starved_since)
		return;
	tctx->starved_since = now;
	tctx->served_at_ns = p->se.sum_exec_runtime + SERVED_NS;
}

/* @p leaves its CPU. If it is still @runnable, it may have had too little CPU time. */
static void note_served(const struct task_struct *p, struct task_ctx *tctx, bool runnable)
{
	if (!runnable || p->se.sum_exec_runtime >= tctx->served_at_ns)
		tctx->starved_since = 0;
}

/* --------------------------------------------------------------------- CPUs */

/*
 * Read and written with the CPU's run queue locked, mostly by the CPU itself. A change
 * of the attributes of its running task stops and restarts that task from another CPU.
 */
struct cpu_ctx {
	u64 fair_served_at;      /* last time that functions in FAIR, or due work, had this CPU */
	u64 asked_at;            /* last call of dispatch() */
	u64 fair_looked_at;      /* last time that dispatch() found nothing due in FAIR */
	u64 uncounted_looked_at; /* last time that dispatch() asked for tasks that no count shows */
	u64 preempted_until;     /* used-up time of PREEMPT_INTERVAL_NS; other CPUs write it */
	u64 outside_used_ns;   /* by tasks that are not functions; not charged to the bucket yet */
	bool next_turn_is_due; /* dispatch() has chosen a turn that goes before FILTER */
	bool turn_is_due;      /* FILTER must wait until this turn ends; other CPUs read it */
	bool is_short_turn;    /* a short turn runs here, or another CPU has claimed it for one */
	bool may_have_own;     /* this CPU's own queues may hold tasks */
	bool dispatch_called;  /* dispatch() was called since the last task began to run */
	bool is_dispatching;   /* dispatch() is running; other CPUs read it */
	bool has_run;          /* a task of ours has run here since load */
	bool runs;             /* a task of ours runs here */
	bool short_turn_is_local; /* short turn in the local queue, others may be picked */
	bool in_release;          /* cpu_release() is running */
	bool is_taken;            /* a real-time task has displaced ours; other CPUs read it */
	u32 shards_seen;          /* position in the rotation among the other shards */
	u32 nr_first;             /* short turns in its local queue, for its tick to find; atomic */
	/* CPU time of this CPU for prompt turns and turns from DSQ_OUTSIDE. Several CPUs
	 * fill and empty it at a time without a lock: a lost update is one turn more or
	 * less. */
	struct token_bucket prompt;
} __attribute__((aligned(64)));

/* An array, not a map: nearly every callback reads it, and each look-up in a map costs a call
 * into the kernel. */
static struct cpu_ctx cpu_ctxs[SFS_MAX_CPUS];

static struct cpu_ctx *lookup_cpu_ctx(s32 cpu)
{
	return &cpu_ctxs[cpu & (SFS_MAX_CPUS - 1)];
}

/*
 * CPUs that run FAIR work which FILTER may preempt. A CPU sets and clears its own
 * bit with its run queue locked. Another CPU that wants to preempt it first claims
 * it by clearing the bit. A bit may be stale by one context switch: if the CPU has
 * gone on to FILTER work, the preemption costs it one look at the queues, because
 * dispatch() lets that work keep the CPU.
 */
private(SFS) struct bpf_cpumask __kptr *fair_cpus;

#endif /* __SFS_STATE_BPF_H */
