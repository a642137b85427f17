/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Telemetry: counters, the IAT map, events to the loader, and the state in a
 * debug dump.
 */
#ifndef __SFS_TELEMETRY_BPF_H
#define __SFS_TELEMETRY_BPF_H

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct sfs_stats);
} stats SEC(".maps");

/* The IAT map: a ring of arrivals. The loader maps it into its memory. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, SFS_IAT_SLOTS);
	__type(key, u32);
	__type(value, struct sfs_arrival);
} iat_map SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 * 1024);
} events SEC(".maps");

/* Some callbacks run with preemption enabled (init_task, exit_task). A plain
 * increment could lose a count there. An atomic on a CPU's own cache line is cheap. */
static void count_n(u32 counter, u64 n)
{
	u32 zero = 0;
	struct sfs_stats *s = bpf_map_lookup_elem(&stats, &zero);

	if (s && counter < SFS_NR_COUNTERS)
		__sync_fetch_and_add(&s->counter[counter], n);
}

static void count(u32 counter)
{
	count_n(counter, 1);
}

/* Called from running() only, with interrupts off: plain increments are enough. */
static void count_filter_start(u64 delay_ns)
{
	u32 zero = 0, bucket = significant_bits(delay_ns / 1000);
	struct sfs_stats *s = bpf_map_lookup_elem(&stats, &zero);

	if (!s || bucket >= SFS_DELAY_BUCKETS)
		return;
	s->counter[SFS_FILTER_STARTS]++;
	s->counter[SFS_FILTER_DELAY_NS] += delay_ns;
	s->delay[bucket]++;
	if (delay_ns > s->delay_max)
		s->delay_max = delay_ns;
}

static void send_event(u32 kind, u64 value, u64 now)
{
	struct sfs_event event = {
		.kind = kind,
		.value = value,
		.at = now,
	};

	if (bpf_ringbuf_output(&events, &event, sizeof(event), 0))
		count(SFS_LOST_EVENTS);
}

/*
 * Put an arrival into the IAT map. Two CPUs with arrivals at the same time take
 * different slots and may fill them out of order. The reader tolerates times that
 * go back, and skips a slot with an unexpected seq.
 */
static void record_arrival(u64 now)
{
	u64 nr = __sync_fetch_and_add(&often.nr_arrivals, 1);
	u32 slot = nr % SFS_IAT_SLOTS;
	struct sfs_arrival *a = bpf_map_lookup_elem(&iat_map, &slot);

	if (a) {
		a->at = now;
		barrier();
		*(volatile u64 *)&a->seq = nr + 1;
	}
	if (iat_window && (nr + 1) % iat_window == 0)
		send_event(SFS_EVENT_ARRIVALS, nr + 1, now);
}

#endif /* __SFS_TELEMETRY_BPF_H */
