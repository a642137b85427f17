/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The types and constants that the kernel half (C) and the loader (Rust, by
 * bindgen) share. All times are nanoseconds of CLOCK_MONOTONIC or of CPU time.
 */
#ifndef __SFS_INTF_H
#define __SFS_INTF_H

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

/* The mode that the scheduler is in. Written by the loader only. */
enum sfs_mode {
	SFS_MODE_FILTER = 0,	/* invocations start in FILTER */
	SFS_MODE_FAIR_ONLY = 1,	/* overload: everything runs in FAIR */
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
enum sfs_counter {
	SFS_ARRIVALS,		/* invocations begun */
	SFS_COMPLETIONS,	/* invocations ended */
	SFS_COMPLETIONS_IN_CREDIT, /* of these, ended before their credit was used up */
	SFS_DEMOTIONS,		/* invocations whose credit was used up */
	SFS_PREEMPTIONS,	/* FAIR turns cut short for FILTER */
	SFS_IO_RETURNS,		/* wake-ups of an invocation that had blocked with credit left */
	SFS_FILTER_STARTS,	/* times that FILTER work got a CPU after waiting or on an idle CPU */
	SFS_FILTER_DELAY_NS,	/* sum of the queueing delays of these */
	SFS_FAIR_TURNS_DUE,	/* FAIR turns given because FAIR had waited long enough */
	SFS_RELIEVED,		/* invocations moved from FILTER to FAIR by the kernel half itself */
	SFS_MOVED,		/* invocations moved between FILTER and FAIR by a mode switch */
	SFS_SYSTEM_WAKEUPS,	/* wake-ups of kernel threads and of the loader */
	SFS_PINNED,		/* tasks queued for the one CPU that they may use */
	SFS_NO_CONTEXT,		/* tasks without a context (no memory for one), run in FAIR */
	SFS_LOST_EVENTS,	/* events that did not fit into the ring buffer */
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
