//! A sched_ext scheduler for serverless functions: the loader.

fn main() {}
