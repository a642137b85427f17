/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is recorded of the processes of a machine, as the BPF program reports it.
 */
#ifndef __SFS_ADVISE_INTF_H
#define __SFS_ADVISE_INTF_H

#ifndef __VMLINUX_H__
typedef unsigned char u8;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
#endif

enum sfs_advise_consts {
	/* Pairs of phases that are kept of a process, a power of two. */
	SFS_ADVISE_PHASES = 16,
	/* Levels of control groups below the root that are reported. */
	SFS_ADVISE_LEVELS = 8,
	SFS_ADVISE_COMM_LEN = 16,
};

/* Who has a CPU. */
enum sfs_advise_kind {
	SFS_ADVISE_IDLE,     /* nobody */
	SFS_ADVISE_FUNCTION, /* a process that was forked during the recording */
	SFS_ADVISE_KERNEL,   /* a kernel thread, or a real-time task */
	SFS_ADVISE_OTHER,    /* a process that was there before */
	SFS_ADVISE_KINDS,
};

/* A process runs, then blocks: all of its threads together. */
struct sfs_advise_phase {
	u64 cpu_ns;
	u64 blocked_ns;
};

/* A process that was forked during the recording. Times are CLOCK_MONOTONIC. Its threads write
 * it from several CPUs: `threads`, `runnable`, `children` and sums of time are atomic; for the others a race of
 * two threads moves a time into a neighbouring phase. */
struct sfs_advise_process {
	u64 forked_at;
	u64 ended_at;                  /* when its last thread left its CPU; 0: it has not */
	u64 blocked_at;                /* since when no thread is runnable */
	u64 turns;                     /* how often a thread of it left a CPU */
	u64 groups[SFS_ADVISE_LEVELS]; /* ids of its control groups, below the root; 0: none */
	struct sfs_advise_phase phases[SFS_ADVISE_PHASES];
	s32 tgid;
	u32 phase;    /* the present one */
	s32 threads;  /* that have not ended */
	s32 runnable; /* that are not blocked */
	u32 most_threads;
	u32 children;                   /* processes that it has forked */
	u32 exit_code;                  /* as wait() has it */
	u32 unused;                     /* no gap: the loader reads bytes */
	u8 comm[SFS_ADVISE_COMM_LEN];   /* its program, when it was forked or began that program */
	u8 parent[SFS_ADVISE_COMM_LEN]; /* its parent's */
};

/* The time of a CPU, by kind of who had it. */
struct sfs_advise_cpu {
	u64 since;                   /* of the task that has it; 0: it has not switched yet */
	u64 ns[SFS_ADVISE_KINDS];    /* by kind */
	u64 turns[SFS_ADVISE_KINDS]; /* stays that have ended, by kind */
	u64 kind;                    /* enum sfs_advise_kind of the task that has it */
};

#endif /* __SFS_ADVISE_INTF_H */
