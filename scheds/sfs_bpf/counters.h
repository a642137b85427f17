/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The counters of the kernel half, one line each. Everything else about them is generated from
 * these lines: the numbers in C and in Rust (enum sfs_counter in intf.h), and the loader's
 * statistics with the text of --help-stats (sfs_bpf/build.rs reads this file).
 *
 * PUBLISHED(NAME, "text"): SFS_NAME; the loader publishes it as the name in lower case.
 * INTERNAL(NAME): SFS_NAME; the loader computes with it.
 */
#ifndef __SFS_COUNTERS_H
#define __SFS_COUNTERS_H

/* clang-format off */
#define SFS_COUNTERS(PUBLISHED, INTERNAL) \
	PUBLISHED(ARRIVALS, "Invocations begun") \
	PUBLISHED(COMPLETIONS, "Invocations ended") \
	PUBLISHED(COMPLETIONS_IN_CREDIT, "Invocations ended within their credit") \
	PUBLISHED(DEMOTIONS, "Invocations demoted to FAIR because their credit was used up") \
	PUBLISHED(PREEMPTIONS, "FAIR turns cut short for FILTER") \
	PUBLISHED(IO_RETURNS, "Wake-ups of invocations that had blocked with credit left") \
	PUBLISHED(BEGUN_BY_FORK, "Invocations begun by the start of a process") \
	PUBLISHED(BEGUN_BY_EXEC, "Invocations begun by exec") \
	PUBLISHED(BEGUN_BY_ACCEPT, "Invocations begun by accept() returning a connection") \
	PUBLISHED(BEGUN_BY_RECEIVE, "Invocations begun by a receive that had waited for data") \
	PUBLISHED(BEGUN_BY_HINT, "Invocations begun by a hint") \
	PUBLISHED(BEGUN_BY_IDLE, "Invocations begun by a wake-up after a long sleep") \
	PUBLISHED(MERGED, "Boundaries that belonged to an invocation begun just before") \
	PUBLISHED(FILTER_STARTS, "Times that FILTER work got a CPU") \
	INTERNAL(FILTER_DELAY_NS) /* sum of the queueing delays of these */ \
	PUBLISHED(FAIR_TURNS_DUE, "FAIR turns given because the head of FAIR had waited too long") \
	PUBLISHED(IN_DEBT, "Times that work with credit ran in FAIR because its tenant had used its share") \
	PUBLISHED(UNLEARNED, "Invocations not used for learning because their tenant has very many") \
	PUBLISHED(RELIEVED, "Tasks moved to FAIR by the kernel half because the loader did not answer") \
	PUBLISHED(GUARDED, "Times that a task was moved to the front because it had waited for 5 s") \
	PUBLISHED(MOVED, "Tasks moved between FILTER and FAIR by a mode switch") \
	PUBLISHED(SYSTEM_WAKEUPS, "Wake-ups of kernel threads and of the loader") \
	PUBLISHED(PROMPT_WAKEUPS, "Wake-ups of daemons that found no idle CPU and were given a busy one") \
	PUBLISHED(THROTTLED, "Times that a cgroup had used up its quota (cpu.max)") \
	PUBLISHED(SHARD_MOVES, "FILTER tasks that a CPU took from a shard other than its own") \
	PUBLISHED(PINNED, "Tasks queued for the only CPU that they may use") \
	PUBLISHED(NO_CONTEXT, "Tasks run in FAIR because there was no memory for their context") \
	PUBLISHED(LOST_EVENTS, "Events that did not fit into the ring buffer")

#endif /* __SFS_COUNTERS_H */
