/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The types and constants that the kernel half (C) and the loader (Rust, by
 * bindgen) share. All times are nanoseconds of CLOCK_MONOTONIC or of CPU time.
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

/* Slots of the IAT map; a power of two, and room for several windows of N. */
#define SFS_IAT_SLOTS 16384

/* Buckets of the queueing-delay histogram: bucket b counts delays whose
 * microseconds have b significant bits, so b = 0 is below 1 us. */
#define SFS_DELAY_BUCKETS 32

/*
 * The kernel ejects a scheduler that leaves a runnable task waiting for 30 s.
 * No wait that this code decides on may come near it: FILTER gives up a task
 * that has waited for so long, whatever O x S is, and FAIR's turns shrink and
 * come more often when its round would take longer.
 */
#define SFS_WATCHDOG_GUARD_NS 10000000000ULL

/* CPUs that have a place in arrays; those beyond share the places of others. */
#define SFS_MAX_CPUS 1024

/* Times at which schedulers were loaded, as far as the loader knows. */
#define SFS_MAX_SPANS 16

/* Shards of FILTER. */
#define SFS_MAX_SHARDS 64

/*
 * Defaults. The kernel half begins with them as far as it has them, and the loader's options
 * have them. What sfs_policy decides by, or the simulation, which know nothing of this file,
 * stands in sfs_policy::defaults as well: scx_sfs/tests/constants.rs compares the two.
 */
#define SFS_DEFAULT_SLICE_NS		100000000ULL	/* S before the first N arrivals */
#define SFS_DEFAULT_IAT_WINDOW		100		/* N */
#define SFS_DEFAULT_FAIR_SLICE_NS	20000000ULL	/* a turn in FAIR */
#define SFS_DEFAULT_FAIR_MAX_WAIT_NS	100000000ULL	/* of FAIR's head */
#define SFS_DEFAULT_IDLE_BOUNDARY_NS	100000000ULL	/* a sleep that ends an invocation */
#define SFS_DEFAULT_AGEING_TENTHS	30		/* 3.0 */
#define SFS_DEFAULT_MAX_SANDBOXES	65536
#define SFS_DEFAULT_MAX_GROUPS		65536

/* The mode that the scheduler is in. Written by the loader only. */
enum sfs_mode {
	SFS_MODE_FILTER = 0,	/* invocations start in FILTER */
	SFS_MODE_FAIR_ONLY = 1,	/* overload: everything runs in FAIR */
};

/* What shares one credit. */
enum sfs_unit {
	SFS_UNIT_PROCESS = 0,	/* a process with all its threads */
	SFS_UNIT_CGROUP = 1,	/* a sandbox: everything in one cgroup and below it */
	SFS_UNIT_THREAD = 2,	/* each thread by itself, as virtual CPUs need it */
};

/* What begins an invocation; bits. */
enum sfs_boundary {
	SFS_BOUNDARY_FORK = 1 << 0,	/* a process starts */
	SFS_BOUNDARY_EXEC = 1 << 1,	/* a process becomes another program */
	SFS_BOUNDARY_ACCEPT = 1 << 2,	/* accept() returns a connection */
	SFS_BOUNDARY_RECEIVE = 1 << 3,	/* a receive returns data that was waited for */
	SFS_BOUNDARY_HINT = 1 << 4,	/* the platform says so */
	SFS_BOUNDARY_IDLE = 1 << 5,	/* the unit wakes up after a long sleep */
};

/* From when to when a scheduler was loaded, in ns of CLOCK_MONOTONIC; up to 0: no span. */
struct sfs_span {
	u64 from;
	u64 to;
};

/* What tells a function, unless a hint names it. */
enum sfs_identity {
	SFS_IDENTITY_COMM = 0,		/* the program's name and its parent's */
	SFS_IDENTITY_SANDBOX = 1,	/* what the loader says of the sandbox */
};

/* A function's identity says where it is from: the number of a name that a hint or
 * the loader has given has the top bit set, that of a program's name the next. */
#define SFS_FUNCTION_NAMED	(1ULL << 63)
#define SFS_FUNCTION_COMM	(1ULL << 62)

/* How functions are scheduled. */
enum sfs_policy_kind {
	SFS_POLICY_SFS = 0,	/* FILTER and FAIR */
	SFS_POLICY_LEARNED = 1,	/* by rank, as soon as something is known */
	SFS_POLICY_FAIR = 2,	/* all in FAIR */
};

/* Buckets of CPU time, 4 to each doubling from 64 us on: those of sfs_policy. */
#define SFS_BUCKETS 90

/* Tables of ranks, and the number that is none. */
#define SFS_RANK_TABLES 512
#define SFS_NO_TABLE 0xffff

/* For each bucket of CPU time that an invocation has used: its rank, lower is
 * earlier, and the next bucket whose rank is worse; SFS_BUCKETS: none. */
struct sfs_rank_table {
	u8 rank[SFS_BUCKETS];
	u8 worse[SFS_BUCKETS];
	u8 pad[12];
};

/* What the loader learns from. */
struct sfs_completion {
	u64 function;	/* identity */
	u64 service_ns;	/* CPU time that it has used */
	u32 killed;	/* a signal ended it: it may have needed more */
	u32 counted;	/* it is one of those by which what nothing is known of is judged */
};

/* Hints applied in one go. */
#define SFS_HINT_BATCH 128

/* A hint from the platform: this process begins to serve a request. */
struct sfs_hint {
	s32 pid;	/* of a thread or process, in the initial namespace */
	u32 flags;	/* none yet: 0 */
	u64 arrived_at;	/* CLOCK_MONOTONIC; 0: now */
	u64 function;	/* with SFS_FUNCTION_NAMED; 0: not named */
	u64 service_ns;	/* what it will need, for experiments with an oracle; 0: unknown */
};

/* Argument of the syscall program that applies the hints in the map `hints`. */
struct sfs_hint_batch {
	u32 nr;		/* in: how many */
	u32 applied;	/* out */
	u32 dead;	/* out: no such process */
	u32 foreign;	/* out: a process that is no function's */
	u32 stale;	/* out: the process has started after the request arrived */
};

/* What is known of a function: the map `functions` has one for each. */
struct sfs_function {
	char comm[16];		/* program that served it last */
	char parent[16];	/* and its parent's */
	u64 cgroup;		/* sandbox that served it last; 0: none */
	u64 invocations;	/* ended */
	u64 demoted;		/* of these, whose credit had been used up */
	u64 service_ns;		/* sum of their CPU time */
	u64 service_max_ns;	/* the most that one has used */
	u64 service_last_ns;	/* what the last one has used */
};

/* What the kernel half tells the loader by ring buffer. */
enum sfs_event_kind {
	SFS_EVENT_ARRIVALS = 1,		/* N more arrivals are in the IAT map */
	SFS_EVENT_OVERLOAD_BEGUN = 2,	/* value: the queueing delay seen, ns */
	SFS_EVENT_OVERLOAD_OVER = 3,	/* value: the delay that a new invocation would see, ns */
	SFS_EVENT_EXIT = 4,		/* the kernel unloads the scheduler; see uei */
};

struct sfs_event {
	u32 kind;	/* enum sfs_event_kind */
	u32 pad;
	u64 value;
	u64 at;		/* when the kernel half saw it, CLOCK_MONOTONIC */
};

/* One arrival in the IAT map. seq is the arrival's number plus one and is
 * written last: a reader that finds another value looks at a slot that is
 * being written, or has been overwritten since. */
struct sfs_arrival {
	u64 seq;
	u64 at;
};

/* Counters, one array for each CPU; the loader sums them up. */
#define SFS_COUNTER_NUMBER(name, ...)	SFS_##name,
enum sfs_counter {
	SFS_COUNTERS(SFS_COUNTER_NUMBER, SFS_COUNTER_NUMBER)
	SFS_NR_COUNTERS,
};

struct sfs_stats {
	u64 counter[SFS_NR_COUNTERS];
	u64 delay[SFS_DELAY_BUCKETS];	/* queueing delays of FILTER_STARTS */
	u64 delay_max;			/* the longest of them, ns */
};

/* Argument of the syscall program that switches the mode. */
struct sfs_mode_switch {
	u32 mode;	/* in: enum sfs_mode */
	u32 moved;	/* out: tasks that changed queues */
	u32 left;	/* out: nonzero if tasks are left to move: call again */
};

#endif /* __SFS_INTF_H */
