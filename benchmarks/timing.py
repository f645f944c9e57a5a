"""CPU time of a task in multiples of a sort of the same scores, and its peak memory."""

import time
import tracemalloc

import numpy as np


def cpu_ratio(task, score, repeats):
    """Median CPU seconds of a task, and of np.sort of the scores, taken in turns."""
    task()  # caches and pages
    tasks, sorts = [], []
    for _ in range(repeats):
        sorts.append(cpu_seconds(lambda: np.sort(score)))
        tasks.append(cpu_seconds(task))
    return float(np.median(tasks)), float(np.median(sorts))


def cpu_seconds(task):
    """CPU seconds of one run."""
    start = time.process_time()
    task()
    return time.process_time() - start


def peak_memory(task, score):
    """Largest memory in use during a task, beyond what was, in multiples of scores."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    task()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return (peak - before) / score.nbytes
