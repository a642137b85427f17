# SPDX-License-Identifier: GPL-2.0-only
"""What a function of the benchmark does: the phases of its request."""

import resource
import time

# Rounds of computing between two looks at the clock. A look takes the run
# queue's lock and has the kernel bring its accounts up to date, which real
# functions do not do all the time.
ROUNDS = 200


def serve(phases):
    """Serves a request and returns what was measured.

    `phases` is as in a trace: "io:20000;cpu:150000", in microseconds. CPU time
    is that of the calling thread.
    """
    start_ns = time.monotonic_ns()
    before = resource.getrusage(resource.RUSAGE_THREAD)
    cpu_ns = time.thread_time_ns()
    target_ns = cpu_ns
    for phase in phases.split(";"):
        kind, microseconds = phase.split(":")
        if kind == "cpu":
            target_ns += int(microseconds) * 1000
            spin_until(target_ns)
        elif kind == "io":
            time.sleep(int(microseconds) / 1e6)
        else:
            raise ValueError(f"phase {phase!r} is neither cpu nor io")
    after = resource.getrusage(resource.RUSAGE_THREAD)
    return {
        "start_ns": start_ns,
        "cpu_us": (time.thread_time_ns() - cpu_ns) // 1000,
        "voluntary": after.ru_nvcsw - before.ru_nvcsw,
        "involuntary": after.ru_nivcsw - before.ru_nivcsw,
    }


def spin_until(target_ns):
    """Computes until the thread has used `target_ns` of CPU time."""
    value = 1
    while time.thread_time_ns() < target_ns:
        for _ in range(ROUNDS):
            value = (value * 1103515245 + 12345) & 0x7FFFFFFF
