/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Types and constants shared by the kernel half (C) and the loader (Rust, by
 * bindgen). All times are nanoseconds of CLOCK_MONOTONIC or of CPU time.
 */
#ifndef __SFS_INTF_H
#define __SFS_INTF_H

#include "counters.h"

#ifndef __VMLINUX_H__
typedef unsigned char u8;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;
#endif

/* Slots of the IAT map: a power of two, with room for several windows of N. */
#define SFS_IAT_SLOTS 16384

/* Buckets of the queueing-delay histogram: bucket b counts delays whose
 * microseconds have b significant bits, so b = 0 is below 1 us. */
#define SFS_DELAY_BUCKETS 32

/*
 * The kernel ejects a scheduler that leaves a runnable task waiting for 30 s.
 * This bound keeps every wait that the scheduler causes well below that limit:
 * FILTER gives up a task after this wait, whatever O x S is, and FAIR's turns
 * become shorter and more frequent when its round would take longer.
 */
#define SFS_WATCHDOG_GUARD_NS 10000000000ULL

/* Size of the per-CPU arrays. CPUs beyond it share the entries of other CPUs. */
#define SFS_MAX_CPUS 1024

/* Maximum number of earlier schedulers whose load times are known. */
#define SFS_MAX_SPANS 16

/* Maximum number of FILTER shards. */
#define SFS_MAX_SHARDS 64

/*
 * Defaults of the loader's options, and initial values of the kernel half's tunables.
 * sfs_policy and the simulation do not use this file. The defaults that they need are also in
 * sfs_policy::defaults; sfs_bpf/tests/constants.rs compares the two.
 */
#define SFS_DEFAULT_SLICE_NS         100000000ULL /* S before the first N arrivals */
#define SFS_DEFAULT_IAT_WINDOW       100          /* N */
#define SFS_DEFAULT_FAIR_SLICE_NS    20000000ULL  /* a turn in FAIR */
#define SFS_DEFAULT_FAIR_MAX_WAIT_NS 100000000ULL /* longest wait of FAIR's head */
#define SFS_DEFAULT_IDLE_BOUNDARY_NS 100000000ULL /* a sleep that ends an invocation */
#define SFS_DEFAULT_AGEING_TENTHS    30           /* 3.0 */
#define SFS_OVERTAKE_PART            8            /* claim.bpf.h */
#define SFS_OVERTAKE_NS              200000000    /* 200 ms */
#define SFS_OVERTAKE_LEAST_NS        8000000      /* 8 ms */
#define SFS_OVERTAKE_MOST_NS         20000000     /* 20 ms */
#define SFS_DEFAULT_MAX_SANDBOXES    65536
#define SFS_DEFAULT_MAX_GROUPS       65536

/* Mode of the scheduler. Written by the loader only. */
enum sfs_mode {
	SFS_MODE_FILTER = 0,    /* invocations start in FILTER */
	SFS_MODE_FAIR_ONLY = 1, /* overload: everything runs in FAIR */
};

/* The tasks that share one credit. */
enum sfs_unit {
	SFS_UNIT_PROCESS = 0, /* a process with all its threads */
	SFS_UNIT_CGROUP = 1,  /* a sandbox: everything in one cgroup and below it */
	SFS_UNIT_THREAD = 2,  /* each thread by itself, for virtual CPUs */
};

/* Events that begin an invocation; bits. */
enum sfs_boundary {
	SFS_BOUNDARY_FORK = 1 << 0,    /* a process starts */
	SFS_BOUNDARY_EXEC = 1 << 1,    /* a process becomes another program */
	SFS_BOUNDARY_ACCEPT = 1 << 2,  /* accept() returns a connection */
	SFS_BOUNDARY_RECEIVE = 1 << 3, /* a receive returns data after a sleep */
	SFS_BOUNDARY_HINT = 1 << 4,    /* the platform reports it */
	SFS_BOUNDARY_IDLE = 1 << 5,    /* the unit wakes up after a long sleep */
};

/* Time during which a scheduler was loaded, in ns of CLOCK_MONOTONIC. `to` is 0: no span. */
struct sfs_span {
	u64 from;
	u64 to;
};

/* How a function is identified, unless a hint names it. */
enum sfs_identity {
	SFS_IDENTITY_COMM = 0,    /* names of the program and its parent */
	SFS_IDENTITY_SANDBOX = 1, /* the loader's identity of the sandbox */
};

/* The top bits of a function's identity tell its source: the top bit is set for a name given
 * by a hint or the loader, the next bit for a program's name. */
#define SFS_FUNCTION_NAMED (1ULL << 63)
#define SFS_FUNCTION_COMM  (1ULL << 62)

/* How functions are scheduled. */
enum sfs_policy_kind {
	SFS_POLICY_SFS = 0,     /* FILTER and FAIR */
	SFS_POLICY_LEARNED = 1, /* by rank, from service times or attained service */
	SFS_POLICY_FAIR = 2,    /* everything in FAIR */
};

/* Buckets of CPU time, 4 per doubling from 64 us. The same as in sfs_policy. */
#define SFS_BUCKETS 90

/* Number of rank tables, and the value for "no table". */
#define SFS_RANK_TABLES 512
#define SFS_NO_TABLE    0xffff

/*
 * For each bucket of CPU time used by an invocation: its rank (lower is earlier) and
 * the next bucket with a worse rank (SFS_BUCKETS: none). Until its first long sleep, an
 * invocation that has used less than the start of bucket `burst` has the rank `burst`, if that
 * is better (0: it has not).
 */
struct sfs_rank_table {
	u8 rank[SFS_BUCKETS];
	u8 worse[SFS_BUCKETS];
	u8 burst;
	u8 pad[11];
};

/* The end of an invocation, for the loader to learn from. */
struct sfs_completion {
	u64 function;      /* identity */
	u64 service_ns;    /* CPU time used */
	u64 burst_ns;      /* of it, before the first long sleep; 0: it had none */
	u64 turnaround_ns; /* from arrival to its end; 0: not known */
	u64 queued_ns;     /* of this, time that the task which ended it waited in queues */
	u32 killed;        /* a signal ended it: it may have needed more */
	u32 counted;       /* also counts for the estimate of unknown functions */
};

/* Hints applied by one call. */
#define SFS_HINT_BATCH 128

/* A hint from the platform: a process begins to serve a request. */
struct sfs_hint {
	s32 pid;        /* of a thread or process, in the initial PID namespace */
	u32 flags;      /* none defined: 0 */
	u64 arrived_at; /* CLOCK_MONOTONIC; 0: now */
	u64 function;   /* with SFS_FUNCTION_NAMED; 0: not named */
	u64 service_ns; /* CPU time that it will need, for experiments with an oracle; 0: unknown */
};

/* Argument of the syscall program that applies the hints in the map `hints`. */
struct sfs_hint_batch {
	u32 nr;      /* in: number of hints */
	u32 applied; /* out: hints applied */
	u32 dead;    /* out: no such process */
	u32 foreign; /* out: the process belongs to no function */
	u32 stale;   /* out: the process started after the request arrived */
};

/* Statistics of one function: the value type of the map `functions`. */
struct sfs_function {
	char comm[16];       /* name of the program that served it last */
	char parent[16];     /* name of its parent */
	u64 cgroup;          /* id of the sandbox that served it last; 0: none */
	u64 invocations;     /* invocations that have ended */
	u64 demoted;         /* of these, those with credit used up */
	u64 service_ns;      /* sum of their CPU time */
	u64 service_max_ns;  /* longest CPU time of one */
	u64 service_last_ns; /* CPU time of the last one */
};

/* Events that the kernel half sends to the loader by ring buffer. */
enum sfs_event_kind {
	SFS_EVENT_ARRIVALS = 1,       /* the IAT map has N more arrivals */
	SFS_EVENT_OVERLOAD_BEGUN = 2, /* value: the queueing delay measured, ns */
	SFS_EVENT_OVERLOAD_OVER = 3,  /* value: the expected delay of a new invocation, ns */
	SFS_EVENT_EXIT = 4,           /* the kernel is unloading the scheduler; see uei */
};

struct sfs_event {
	u32 kind; /* enum sfs_event_kind */
	u32 pad;
	u64 value;
	u64 at; /* time of the event, CLOCK_MONOTONIC */
};

/* One arrival in the IAT map. seq is the arrival's number plus one and is written
 * last. If a reader finds another value, the slot is being written or has been
 * overwritten. */
struct sfs_arrival {
	u64 seq;
	u64 at;
};

/* Counters, one array per CPU. The loader adds them up. */
#define SFS_COUNTER_NUMBER(name, ...) SFS_##name,
enum sfs_counter {
	SFS_COUNTERS(SFS_COUNTER_NUMBER, SFS_COUNTER_NUMBER) SFS_NR_COUNTERS,
};

struct sfs_stats {
	u64 counter[SFS_NR_COUNTERS];
	u64 delay[SFS_DELAY_BUCKETS]; /* queueing delays of FILTER_STARTS */
	u64 delay_max;                /* longest of these delays, ns */
};

/* Argument of the syscall program switch_mode(). */
struct sfs_mode_switch {
	u32 mode;  /* in: enum sfs_mode */
	u32 moved; /* out: tasks that changed queues */
	u32 left;  /* out: nonzero if tasks remain to be moved: call again */
};

/* What the syscall program measure_queues() fills in: tasks that wait now, in the queues of all
 * shards and of single CPUs too. */
struct sfs_queue_lengths {
	u64 filter;
	u64 ranked;
	u64 fair;
	u64 outside;
	u64 present; /* runnable function tasks, waiting or running; 0 without the learned policy */
};

#endif /* __SFS_INTF_H */
