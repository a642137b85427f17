/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Topology, and the choice of an idle CPU: kernel/sched/ext_idle.c of Linux 6.18, without nodes of
 * their own in the mask of idle CPUs (SCX_OPS_BUILTIN_IDLE_PER_NODE, which is not asked for).
 */
#ifndef __MODEL_IDLE_H
#define __MODEL_IDLE_H

/* What a CPU shares with others, in the types of src/topology.rs: numbers from 0. */
struct model_place {
	u16 core;
	u16 cache;
	u16 node;
	bool isolated;
};

static struct cpumask idle_cpus, idle_cores, housekeeping;
/* The masks of a core, a cache and a node, at their numbers. */
static struct cpumask cores[SFS_MAX_CPUS], caches[SFS_MAX_CPUS], nodes[SFS_MAX_CPUS];
static struct model_place places[SFS_MAX_CPUS];
/* sched_smt_active(), scx_selcpu_topo_llc and scx_selcpu_topo_numa. */
static bool has_siblings, knows_caches, knows_nodes;

static void add_cpu(struct cpumask *mask, u32 cpu)
{
	bpf_cpumask_set_cpu(cpu, (struct bpf_cpumask *)mask);
}

static u32 weight_of(const struct cpumask *mask)
{
	u32 weight = 0;

	for (u32 i = 0; i < WORDS; i++)
		weight += __builtin_popcountl(mask->bits[i]);
	return weight;
}

/* llc_span(): a cache of one CPU has no scheduling domain, nor has an isolated CPU. */
static const struct cpumask *cache_of(u32 cpu)
{
	const struct cpumask *cache = &caches[places[cpu].cache];

	return !places[cpu].isolated && weight_of(cache) > 1 ? cache : NULL;
}

/* numa_span(): nor has a machine with one node. */
static const struct cpumask *node_of(u32 cpu)
{
	const struct cpumask *node = &nodes[places[cpu].node];

	return !places[cpu].isolated && weight_of(node) < weight_of(&housekeeping) ? node : NULL;
}

/* scx_idle_update_selcpu_topology() */
static void update_topology(void)
{
	const struct cpumask *cache = cache_of(0), *node = node_of(0);

	knows_caches = cache && weight_of(cache) < nr_cpu_ids;
	knows_nodes = false;
	if (!node || weight_of(node) >= nr_cpu_ids)
		return;
	for (u32 cpu = 0; cpu < nr_cpu_ids; cpu++) {
		cache = cache_of(cpu);
		node = node_of(cpu);
		if ((cache ? weight_of(cache) : 0) != (node ? weight_of(node) : 0))
			knows_nodes = true;
	}
}

void model_tune_topology(const struct model_place *all)
{
	for (u32 cpu = 0; cpu < nr_cpu_ids; cpu++) {
		places[cpu] = all[cpu];
		add_cpu(&cores[all[cpu].core], cpu);
		if (weight_of(&cores[all[cpu].core]) > 1)
			has_siblings = true;
		if (all[cpu].isolated)
			continue;
		add_cpu(&housekeeping, cpu);
		add_cpu(&caches[all[cpu].cache], cpu);
		add_cpu(&nodes[all[cpu].node], cpu);
	}
	update_topology();
}

/* A new task may run on all CPUs but isolated ones: the affinity of init. */
static void model_housekeeping(struct task_struct *p)
{
	p->cpus_mask = housekeeping;
	p->nr_cpus_allowed = weight_of(&housekeeping);
}

static bool covers(const struct cpumask *part, const struct cpumask *all)
{
	for (u32 i = 0; i < WORDS; i++)
		if (part->bits[i] & ~all->bits[i])
			return false;
	return true;
}

static void take_core_out(u32 cpu)
{
	for (u32 i = 0; i < WORDS; i++)
		idle_cores.bits[i] &= ~cores[places[cpu].core].bits[i];
}

/* update_builtin_idle() */
void model_set_idle(u32 cpu, bool idle)
{
	const struct cpumask *core = &cores[places[cpu].core];

	if (!idle) {
		bpf_cpumask_clear_cpu(cpu, (struct bpf_cpumask *)&idle_cpus);
		take_core_out(cpu);
		return;
	}
	add_cpu(&idle_cpus, cpu);
	if (!has_siblings || !covers(core, &idle_cpus))
		return;
	for (u32 i = 0; i < WORDS; i++)
		idle_cores.bits[i] |= core->bits[i];
}

const struct cpumask *scx_bpf_get_idle_cpumask(void)
{
	return &idle_cpus;
}

void scx_bpf_put_idle_cpumask(const struct cpumask *mask)
{
}

/* scx_idle_test_and_clear_cpu(): the core is not idle either way. */
bool scx_bpf_test_and_clear_cpu_idle(s32 cpu)
{
	if (has_siblings)
		take_core_out(cpu);
	return bpf_cpumask_test_and_clear_cpu(cpu, (struct bpf_cpumask *)&idle_cpus);
}

/* SCX_PICK_IDLE_CORE */
#define WHOLE_CORE 1

/* pick_idle_cpu_in_node(): whole cores first. */
s32 scx_bpf_pick_idle_cpu(const struct cpumask *allowed, u64 flags)
{
	u32 cpu = nr_cpu_ids;

	if (has_siblings)
		cpu = bpf_cpumask_any_and_distribute(&idle_cores, allowed);
	if (cpu >= nr_cpu_ids && !(flags & WHOLE_CORE))
		cpu = bpf_cpumask_any_and_distribute(&idle_cpus, allowed);
	if (cpu >= nr_cpu_ids)
		return -EBUSY;
	scx_bpf_test_and_clear_cpu_idle(cpu);
	return cpu;
}

/* The part of @near that @p may use, in @both; NULL: none. */
static const struct cpumask *usable(const struct task_struct *p, const struct cpumask *near,
				    struct cpumask *both)
{
	unsigned long any = 0;

	if (!near || p->nr_cpus_allowed >= (s32)nr_cpu_ids)
		return near;
	for (u32 i = 0; i < WORDS; i++)
		any |= both->bits[i] = near->bits[i] & p->cpus_ptr->bits[i];
	return any ? both : NULL;
}

/* The search from near to far: a cache, a node, the machine. */
static s32 pick_near(const struct task_struct *p, s32 prev_cpu, u64 flags)
{
	static struct cpumask in_cache, in_node;
	const struct cpumask *cache = NULL, *node = NULL;
	s32 cpu = -EBUSY;

	if (knows_nodes)
		node = usable(p, node_of(prev_cpu), &in_node);
	if (knows_caches)
		cache = usable(p, cache_of(prev_cpu), &in_cache);
	if (cache)
		cpu = scx_bpf_pick_idle_cpu(cache, flags);
	if (cpu < 0 && node)
		cpu = scx_bpf_pick_idle_cpu(node, flags);
	return cpu < 0 ? scx_bpf_pick_idle_cpu(p->cpus_ptr, flags) : cpu;
}

/* The part for SCX_WAKE_SYNC: the waker's CPU, if it has no other task and the machine idles. */
static s32 pick_for_sync(const struct task_struct *p, s32 prev_cpu, bool may_use_prev)
{
	s32 here = bpf_get_smp_processor_id();

	if (may_use_prev && (here == prev_cpu || places[here].cache == places[prev_cpu].cache) &&
	    scx_bpf_test_and_clear_cpu_idle(prev_cpu))
		return prev_cpu;
	if (!(bpf_get_current_task_btf()->flags & PF_EXITING) &&
	    !scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL) && !bpf_cpumask_empty(&idle_cpus) &&
	    bpf_cpumask_test_cpu(here, p->cpus_ptr))
		return here;
	return -EBUSY;
}

/* scx_select_cpu_dfl(): whole idle cores first, then the previous CPU, then from near to far. */
static s32 pick_cpu(const struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool may_use_prev = bpf_cpumask_test_cpu(prev_cpu, p->cpus_ptr);
	s32 cpu;

	if (wake_flags & SCX_WAKE_SYNC) {
		cpu = pick_for_sync(p, prev_cpu, may_use_prev);
		if (cpu >= 0)
			return cpu;
	}
	if (has_siblings) {
		if (may_use_prev && bpf_cpumask_test_cpu(prev_cpu, &idle_cores) &&
		    scx_bpf_test_and_clear_cpu_idle(prev_cpu))
			return prev_cpu;
		cpu = pick_near(p, prev_cpu, WHOLE_CORE);
		if (cpu >= 0)
			return cpu;
	}
	if (may_use_prev && scx_bpf_test_and_clear_cpu_idle(prev_cpu))
		return prev_cpu;
	return pick_near(p, prev_cpu, 0);
}

s32 scx_bpf_select_cpu_dfl(struct task_struct *p, s32 prev_cpu, u64 wake_flags, bool *is_idle)
{
	s32 cpu = pick_cpu(p, prev_cpu, wake_flags);

	*is_idle = cpu >= 0;
	return cpu >= 0 ? cpu : prev_cpu;
}

#endif /* __MODEL_IDLE_H */
