/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Buckets of time. Plain C that needs only the types of intf.h, so that a test can compile
 * it for the host and compare it with sfs_policy (sfs_policy/tests/buckets_in_c.rs).
 */
#ifndef __SFS_BUCKETS_H
#define __SFS_BUCKETS_H

/* Return the number of significant bits of @v, 0 to 31. */
static u32 significant_bits(u64 v)
{
	u32 bits = 0;

	if (v >> 31)
		return 31;
	if (v >> 16) {
		v >>= 16;
		bits += 16;
	}
	if (v >> 8) {
		v >>= 8;
		bits += 8;
	}
	if (v >> 4) {
		v >>= 4;
		bits += 4;
	}
	if (v >> 2) {
		v >>= 2;
		bits += 2;
	}
	if (v >> 1) {
		v >>= 1;
		bits += 1;
	}
	return bits + (u32)v;
}

/* Return the bucket of @ns: 4 buckets per doubling, from 64 us. */
static u32 bucket_of(u64 ns)
{
	u32 bits, bucket;

	if (ns < (1ULL << 16))
		return 0;
	bits = significant_bits(ns >> 16); /* 1 for 2^16 to 2^17 */
	bucket = 1 + 4 * (bits - 1) + ((ns >> (bits + 13)) & 3);
	return bucket < SFS_BUCKETS ? bucket : SFS_BUCKETS - 1;
}

/* Return where @bucket begins, in ns. */
static u64 bucket_start(u32 bucket)
{
	if (!bucket)
		return 0;
	return (u64)(4 + (bucket - 1) % 4) << (14 + (bucket - 1) / 4 % 32);
}

#endif /* __SFS_BUCKETS_H */
