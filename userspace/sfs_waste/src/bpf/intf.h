/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the program that watches tells of a scheduling event.
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
	/* Of a task's CPUs so many times 64 are told; it is taken for one that may not use
	 * those beyond. */
	SFS_WASTE_CPU_WORDS = 4,
	SFS_WASTE_COMM_LEN = 16,
	/* Nobody, or not known. */
	SFS_WASTE_NONE = -1,
};

/* What is known of the tasks of an event. */
enum sfs_waste_flags {
	SFS_WASTE_KERNEL = 1,		/* `waits` is a thread of the kernel that is not nice */
	SFS_WASTE_REAL_TIME = 2,	/* `runs` is a real-time or deadline task */
	SFS_WASTE_WOKEN = 4,		/* `waits` has been woken up */
};

/* A context switch, a wake-up, or a change of control group, of CPUs or of class. */
struct sfs_waste_event {
	u64 at_ns;			/* CLOCK_MONOTONIC */
	u64 cpus[SFS_WASTE_CPU_WORDS];	/* those that the task `waits` may use; none: it no
					 * longer waits, for all that one can tell */
	s32 waits;			/* the thread that begins to wait for a CPU, or NONE */
	s32 runs;			/* the thread that has got `cpu`, or has it in another class;
					 * 0: it idles; NONE: a wake-up */
	u32 cpu;
	u32 flags;			/* enum sfs_waste_flags */
	char comm[SFS_WASTE_COMM_LEN];	/* of the task `waits` */
};

#endif /* __SFS_WASTE_INTF_H */
