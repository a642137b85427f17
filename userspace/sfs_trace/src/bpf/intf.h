/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Types shared by the program that reports scheduling events and user space. No struct has a
 * gap. All times are nanoseconds of CLOCK_MONOTONIC.
 */
#ifndef __SFS_TRACE_INTF_H
#define __SFS_TRACE_INTF_H

#ifndef __VMLINUX_H__
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
#endif

enum sfs_trace_consts {
	/* CPUs whose use by a confined task is reported; further ones are not. */
	SFS_TRACE_CPU_WORDS = 16,
	/* Bytes of a cgroup's path that are reported, with the final NUL. */
	SFS_TRACE_PATH_BYTES = 256,
};

enum sfs_trace_kind {
	SFS_TRACE_SWITCH = 1,   /* sfs_trace_switch */
	SFS_TRACE_WAKE = 2,     /* sfs_trace_single: it became runnable */
	SFS_TRACE_NEW = 3,      /* the same for the first time */
	SFS_TRACE_MOVED = 4,    /* it waits in another queue */
	SFS_TRACE_LOOK = 5,     /* it runs, with another turn or invocation than before */
	SFS_TRACE_CONFINED = 6, /* sfs_trace_confined: the next event is about it */
	SFS_TRACE_CGROUP = 7,   /* sfs_trace_cgroup: it is new */
};

enum sfs_trace_flags {
	SFS_TRACE_REAL_TIME = 1 << 0, /* real-time or deadline task */
	SFS_TRACE_KERNEL = 1 << 1,    /* kernel thread */
	SFS_TRACE_CONTEXT = 1 << 2,   /* the scheduler's context of it was read */
	SFS_TRACE_OPEN = 1 << 3,      /* its unit serves an invocation */
	SFS_TRACE_CPUS = 1 << 4,      /* it may not use all CPUs */
	SFS_TRACE_IO = 1 << 5,        /* it waits for a disk, or the like */
	SFS_TRACE_LAST = 1 << 6,      /* all threads of its process have begun to exit */
};

/* A task, as it is when the event happens. */
struct sfs_trace_task {
	u64 arrived_at; /* of its unit's invocation */
	u64 function;   /* identity */
	u64 sandbox;    /* id of the sandbox's cgroup; 0: none */
	u64 cgroup;     /* id of its cgroup; 0: unknown */
	u64 queue;      /* id of the dispatch queue that it waits in; 0: none */
	s32 pid;
	s32 tgid;
	u32 seq;  /* number of the invocation within its unit */
	u16 turn; /* enum turn of the scheduler */
	u16 flags;
	u8 comm[16];
};

struct sfs_trace_switch {
	u64 at_ns;
	u32 kind;
	u32 cpu;
	u32 left; /* state of the task that leaves; 0: it is still runnable */
	u32 pad;
	struct sfs_trace_task prev;
	struct sfs_trace_task next;
};

struct sfs_trace_single {
	u64 at_ns;
	u32 kind;
	u32 cpu;
	struct sfs_trace_task task;
};

struct sfs_trace_confined {
	u64 at_ns;
	u32 kind;
	s32 pid;
	u64 cpus[SFS_TRACE_CPU_WORDS];
};

struct sfs_trace_cgroup {
	u64 at_ns;
	u32 kind;
	u32 pad;
	u64 id;
	u8 path[SFS_TRACE_PATH_BYTES];
};

#endif /* __SFS_TRACE_INTF_H */
