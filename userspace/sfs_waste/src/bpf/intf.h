/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Scheduling events, as the BPF program reports them.
 */
#ifndef __SFS_WASTE_INTF_H
#define __SFS_WASTE_INTF_H

#ifndef __VMLINUX_H__
typedef unsigned char u8;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
#endif

enum sfs_waste_consts {
	/* Words of 64 CPUs reported for a task; CPUs beyond them count as not usable by
	 * it. */
	SFS_WASTE_CPU_WORDS = 4,
	SFS_WASTE_COMM_LEN = 16,
	/* Shorter softirqs are not reported, in ns. */
	SFS_WASTE_SOFTIRQ_NS = 1000000,
	/* No thread, or unknown. */
	SFS_WASTE_NONE = -1,
};

/* Properties of the tasks of an event. */
enum sfs_waste_flags {
	SFS_WASTE_KERNEL = 1,    /* `waits` is a kernel thread with a nice value of 0 or less */
	SFS_WASTE_REAL_TIME = 2, /* `runs` is a real-time or deadline task */
	SFS_WASTE_WOKEN = 4,     /* `waits` has been woken up */
};

/* A context switch, a wake-up, a change of control group, of CPUs or of class, or the end of a
 * softirq. */
struct sfs_waste_event {
	u64 at_ns;                     /* CLOCK_MONOTONIC */
	u64 softirq_ns;                /* length of the softirq that ends on `cpu`, if not 0 */
	u64 cpus[SFS_WASTE_CPU_WORDS]; /* CPUs that the task `waits` may use; none: it no
					 * longer waits, as far as is known */
	s32 waits;                     /* the thread that begins to wait for a CPU, or NONE */
	s32 runs;                      /* the thread that has got `cpu`, or has it in another class;
					 * 0: it idles; NONE: a wake-up */
	u32 cpu;
	u32 flags;                     /* enum sfs_waste_flags */
	char comm[SFS_WASTE_COMM_LEN]; /* of the task `waits` */
};

#endif /* __SFS_WASTE_INTF_H */
