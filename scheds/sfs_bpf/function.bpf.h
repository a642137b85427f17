/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Function: its identity, and the figures published about it when one of its
 * invocations ends.
 */
#ifndef __SFS_FUNCTION_BPF_H
#define __SFS_FUNCTION_BPF_H

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u64); /* identity */
	__type(value, struct sfs_function);
} functions SEC(".maps");

/* FNV-1a, 64 bits (Fowler, Noll, Vo). */
#define FNV_BASIS 0xcbf29ce484222325ULL
#define FNV_PRIME 0x100000001b3ULL

/* Mix the 16 bytes of a program's name into @hash (FNV-1a, in words). */
static u64 mix_name(u64 hash, const char *name)
{
	const u64 *words = (const u64 *)name;

	hash = (hash ^ words[0]) * FNV_PRIME;
	hash ^= hash >> 29;
	hash = (hash ^ words[1]) * FNV_PRIME;
	return hash ^ hash >> 32;
}

/* Read the names of @p's program and of its parent's program. */
static void read_names(struct task_struct *p, char *comm, char *parent)
{
	__builtin_memset(comm, 0, 16);
	__builtin_memset(parent, 0, 16);
	bpf_probe_read_kernel_str(comm, 16, p->comm);
	bpf_probe_read_kernel_str(parent, 16, BPF_CORE_READ(p, real_parent, comm));
}

/*
 * Limit of the identities of one tenant's programs. A tenant may have any number of programs
 * with any names, but the room for functions is limited. Two of its programs may share what
 * is learned; among a dozen programs, two do so in one case of sixty.
 */
#define TENANT_IDENTITIES 4096

/* Return a number for the platform's name of @p's tenant, or 0 (share.bpf.h). */
u64 name_of_tenant(struct task_struct *p __arg_trusted);

/*
 * Return the identity of the function that @p works for. A program's identity holds within the
 * function whose sandbox it runs in, or within its tenant. Names are cheap: a tenant that takes
 * the name of another tenant's program must neither use nor spoil what is known about that.
 */
static u64 identify(struct task_struct *p, const struct task_ctx *tctx)
{
	struct sandbox *sandbox = NULL;
	u64 names[4], hash, whose;

	if (tctx->sandbox)
		sandbox = bpf_map_lookup_elem(&sandboxes, &tctx->sandbox);
	if (sandbox && identity == SFS_IDENTITY_SANDBOX)
		return sandbox->function;
	read_names(p, (char *)names, (char *)&names[2]);
	hash = mix_name(mix_name(FNV_BASIS, (char *)names), (char *)&names[2]);
	whose = sandbox ? sandbox->function : name_of_tenant(p);
	if (whose) {
		names[0] = whose;
		names[1] = hash % TENANT_IDENTITIES;
		hash = mix_name(FNV_BASIS, (char *)names);
	}
	return (hash & ~(SFS_FUNCTION_NAMED | SFS_FUNCTION_COMM)) | SFS_FUNCTION_COMM;
}

/* Measured service times on their way to the loader. `completion_batch` of them wake it up; it
 * fetches fewer once a second. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 512 * 1024);
} completions SEC(".maps");

/* Bytes of a completion in the ring buffer, with the kernel's header. */
#define COMPLETION_BYTES (sizeof(struct sfs_completion) + BPF_RINGBUF_HDR_SZ)

/* Return true if a completion of tenant @id may be reported at @now (evidence.bpf.h). */
bool may_report(u64 id, u64 now);

/* Report the end of @inv to the loader, which learns from its service time. */
static void report_service(struct task_struct *p, const struct task_ctx *tctx,
			   const struct invocation *inv, u64 service_ns)
{
	struct sfs_completion completion = {
		.function = inv->function,
		.service_ns = service_ns,
		.burst_ns = inv->burst_ns,
		.turnaround_ns = inv->quiet_at ? time_delta(inv->quiet_at, inv->arrived_at) : 0,
		.queued_ns = tctx->queued_ns,
		.killed = (p->exit_code & 0x7f) != 0,
		.counted = inv->counted,
	};
	u64 waiting = bpf_ringbuf_query(&completions, BPF_RB_AVAIL_DATA) + COMPLETION_BYTES;
	u64 flags = waiting < completion_batch * COMPLETION_BYTES ? BPF_RB_NO_WAKEUP :
								    BPF_RB_FORCE_WAKEUP;

	if (bpf_ringbuf_output(&completions, &completion, sizeof(completion), flags))
		count(SFS_LOST_EVENTS);
}

/*
 * Publish that @inv, served by @p, has ended. Counts are exact. If two invocations end
 * at the same time, the maximum of one may be lost.
 */
static void publish_service(struct task_struct *p, const struct task_ctx *tctx,
			    const struct invocation *inv, u64 service_ns, bool demoted)
{
	u64 function = inv->function;
	struct sfs_function *f = bpf_map_lookup_elem(&functions, &function);

	if (policy == SFS_POLICY_LEARNED && may_report(tenant(tctx), clock_now()))
		report_service(p, tctx, inv, service_ns);
	if (!f) {
		struct sfs_function fresh = {};

		read_names(p, fresh.comm, fresh.parent);
		bpf_map_update_elem(&functions, &function, &fresh, BPF_NOEXIST);
		f = bpf_map_lookup_elem(&functions, &function);
		if (!f)
			return;
	}
	f->cgroup = tctx->sandbox;
	f->service_last_ns = service_ns;
	if (service_ns > f->service_max_ns)
		f->service_max_ns = service_ns;
	__sync_fetch_and_add(&f->service_ns, service_ns);
	__sync_fetch_and_add(&f->demoted, demoted);
	__sync_fetch_and_add(&f->invocations, 1);
}

#endif /* __SFS_FUNCTION_BPF_H */
