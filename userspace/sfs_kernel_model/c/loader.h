/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel half as the loader sees it: the words and maps that it reads and writes, and what
 * the model's checks of the two together need. Included by model.c, after the kernel half.
 */
#ifndef __MODEL_LOADER_H
#define __MODEL_LOADER_H

/* What the loader sets before it loads; in the types of src/loader_ffi.rs. */
struct model_loader {
	s32 tgid;
	u32 iat_window;
	u32 overload;
};

void model_tune_loader(const struct model_loader *loader)
{
	loader_tgid = loader->tgid;
	iat_window = loader->iat_window;
	overload_enabled = loader->overload;
}

/* The maps that the loader reads and writes, by their addresses. */
struct model_loader_maps {
	void *events;
	void *completions;
	void *arrivals;
	void *rank_tables;
	void *function_tables;
	void *stats;
	void *hints;
	void *groups;
};

void model_list_loader_maps(struct model_loader_maps *maps)
{
	maps->events = &events;
	maps->completions = &completions;
	maps->arrivals = &iat_map;
	maps->rank_tables = &rank_tables;
	maps->function_tables = &function_tables;
	maps->stats = &stats;
	maps->hints = &hints;
	maps->groups = &groups;
}

void model_set_slice(u64 slice, u64 overload, u64 recover)
{
	slice_ns = slice;
	overload_wait_ns = overload;
	recover_wait_ns = recover;
}

/* FILTER has @shards shards; @of_cpus has that of each CPU. */
void model_tune_shards(u32 shards, const u8 *of_cpus)
{
	nr_shards = shards;
	for (u32 cpu = 0; cpu < nr_cpu_ids; cpu++)
		cpu_shards[cpu] = of_cpus[cpu];
}

u64 model_nr_arrivals(void)
{
	return half_nr_arrivals();
}

/* Whether invocations begin at a boundary that takes an earlier time: that of the wake-up before
 * it, or the one that a hint names. */
bool model_arrivals_lie_back(void)
{
	return boundaries & (SFS_BOUNDARY_ACCEPT | SFS_BOUNDARY_RECEIVE | SFS_BOUNDARY_HINT);
}

void model_dismiss_overload(void)
{
	overload_since = 0;
}

void model_set_default_table(u32 table)
{
	half_default_table = table;
}

void model_set_completion_batch(u32 batch)
{
	half_set_completion_batch(batch);
}

/* What both halves share, and what follows from it; in the types of src/loader_ffi.rs. */
struct model_words {
	u32 mode;
	u32 default_table;
	u64 slice_ns;
	u64 overload_wait_ns;
	u64 recover_wait_ns;
	u64 overload_since;  /* 0: no overload that the loader has not answered */
	u64 overload_wait;   /* the wait in FILTER that means overload */
	u64 loader_grace_ns; /* the time that the loader has for its answer */
	u64 expected_delay;  /* of a new invocation */
	u64 head_wait;       /* of FILTER's head, the longest one of its shards; 0: there is none */
	u64 fair_slice_ns;   /* the longest turn in FAIR */
};

/* How long the head of a shard of FILTER has waited; 0: there is none. */
static u64 shard_head_wait(u32 shard)
{
	struct task_struct *head = first_of(DSQ_FILTER_SHARD(shard));
	struct task_ctx *tctx = head ? try_lookup_task_ctx(head) : NULL;

	return tctx && tctx->queued_at ? time_delta(half_now(), tctx->queued_at) : 0;
}

void model_read_words(struct model_words *words)
{
	words->mode = mode;
	words->default_table = half_default_table;
	words->slice_ns = slice_ns;
	words->overload_wait_ns = overload_wait_ns;
	words->recover_wait_ns = recover_wait_ns;
	words->overload_since = overload_since;
	words->overload_wait = overload_wait();
	words->loader_grace_ns = loader_grace_ns;
	words->expected_delay = expected_delay();
	words->head_wait = 0;
	for (u32 shard = 0; shard < nr_shards; shard++) {
		u64 wait = shard_head_wait(shard);

		if (wait > words->head_wait)
			words->head_wait = wait;
	}
	words->fair_slice_ns = fair_slice_ns;
}

/* How many tasks a CPU has moved from FILTER to FAIR. */
u64 model_relieved(const struct sfs_stats *of_cpu)
{
	return half_relieved(of_cpu);
}

/* The kind of the turn of @p; enum turn. */
u32 model_turn_of(struct task_struct *p)
{
	struct task_ctx *tctx = try_lookup_task_ctx(p);

	return tctx ? tctx->turn : TURN_FAIR;
}

/* Whether @p, which waits in FAIR, goes to FILTER when overload ends. */
bool model_is_due_to_filter(struct task_struct *p)
{
	struct task_ctx *tctx = try_lookup_task_ctx(p);

	return tctx && has_credit(lookup_invocation(p, tctx)) && !half_is_held_back(tctx);
}

/* The name of the program that @p runs: the kernel half tells functions apart by it. */
void model_name_task(struct task_struct *p, const char *name)
{
	u32 i;

	for (i = 0; i + 1 < sizeof(p->comm) && name[i]; i++)
		p->comm[i] = name[i];
	p->comm[i] = 0;
}

#endif /* __MODEL_LOADER_H */
