"""The main job in Python through plugins/python: two ranks as processes, the unique id over an inherited
descriptor, the fused operation on CPU ranks, checked. Usage: main_job.py (FCCL_LIBRARY names libfccl.so,
PYTHONPATH has plugins/python).
"""

import array
import math
import os
import subprocess
import sys

RANKS, TOKENS, HIDDEN, EPS = 2, 5, 1000, 1e-5
COUNT = TOKENS * HIDDEN


def value(rank, index):
    return float((index * 7 + rank * 13) % 31 - 15)


def run_rank(rank, descriptor):
    import fccl

    if rank == 0:
        unique_id = fccl.unique_id()
        os.write(descriptor, unique_id)
    else:
        unique_id = os.read(descriptor, 128)
    x = array.array("f", (value(rank, i) for i in range(COUNT)))
    residual = array.array("f", (float(i % 11 - 5) for i in range(COUNT)))
    weight = array.array("f", (0.5 + i % 4 / 4 for i in range(HIDDEN)))
    residual_out = array.array("f", bytes(4 * COUNT))
    norm_out = array.array("f", bytes(4 * COUNT))
    with fccl.Communicator(RANKS, rank, unique_id, backend=fccl.CPU, init_timeout_ms=60000) as comm:
        comm.all_reduce_residual_rms_norm(x, residual, weight, residual_out, norm_out, TOKENS, HIDDEN, fccl.FLOAT32, EPS)
    wrong = 0
    for row in range(TOKENS):
        truth = [value(0, i) + value(1, i) + i % 11 - 5 for i in range(row * HIDDEN, (row + 1) * HIDDEN)]
        scale = 1 / math.sqrt(sum(h * h for h in truth) / HIDDEN + EPS)
        for column, h in enumerate(truth):
            wrong += residual_out[row * HIDDEN + column] != h
            wrong += not math.isclose(norm_out[row * HIDDEN + column], h * scale * weight[column], rel_tol=1e-6, abs_tol=1e-12)
    print(f"rank {rank}: {wrong} of {2 * COUNT} elements wrong", flush=True)
    return 1 if wrong else 0


def main():
    reader, writer = os.pipe()
    ends = [writer, reader]
    children = [
        subprocess.Popen([sys.executable, __file__, str(rank), str(ends[rank])], pass_fds=[ends[rank]]) for rank in range(RANKS)
    ]
    return 1 if any([child.wait(timeout=120) for child in children]) else 0


if __name__ == "__main__":
    sys.exit(run_rank(int(sys.argv[1]), int(sys.argv[2])) if len(sys.argv) == 3 else main())
