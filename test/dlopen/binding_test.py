"""Tests of the Python binding: every function, errors as exceptions, the context manager, and the
struct sizes against the golden layout. Ranks are threads of this process.
"""

import array
import ctypes
import json
import re
import sys
import threading
import unittest
from pathlib import Path

import fccl
from fccl import _abi

LAYOUT = Path(__file__).resolve().parents[1] / "abi/layout.txt"
SYMBOLS = LAYOUT.parent / "symbols.txt"
STRUCTS = {"fcclUniqueId": _abi.UniqueId, "fcclConfig": _abi.Config, "fcclOutput": _abi.Output, "fcclFusedArgs": _abi.FusedArgs,
           "fcclPlanInfo": _abi.PlanInfo, "fcclMemoryInfo": _abi.MemoryInfo, "fcclVariableInfo": _abi.VariableInfo,
           "fcclCommStats": _abi.CommStats}
NO_CODE = {"fcclGetErrorString", "fcclGetLastError"}


def floats(values):
    return array.array("f", values)


def on_ranks(ranks, work, **config):
    """Runs work(comm) on each rank in a thread; raises the first failure."""
    uid = fccl.unique_id()
    failures = []

    def one(rank):
        try:
            with fccl.Communicator(ranks, rank, uid, backend=fccl.CPU, init_timeout_ms=60000, **config) as comm:
                work(comm)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


class Abi(unittest.TestCase):
    def test_structs_are_laid_out_as_in_c(self):
        lines = LAYOUT.read_text().splitlines()
        current = None
        seen = set()
        for line in lines:
            head = re.match(r"type (\w+) (\d+)$", line)
            field = re.match(r"  (\w+) (\d+) (\d+)$", line)
            if head:
                current = STRUCTS.get(head.group(1))
                if current:
                    seen.add(head.group(1))
                    self.assertEqual(ctypes.sizeof(current), int(head.group(2)), line)
            elif field and current:
                described = getattr(current, field.group(1))
                self.assertEqual((described.offset, described.size), (int(field.group(2)), int(field.group(3))), line)
        self.assertEqual(seen, set(STRUCTS))

    def test_every_function_of_the_library_is_bound(self):
        exported = {line.split("@")[0] for line in SYMBOLS.read_text().split() if line.startswith("fccl")}
        self.assertEqual(exported - NO_CODE, set(_abi.FUNCTIONS))


class WithoutCommunicator(unittest.TestCase):
    def test_version(self):
        self.assertEqual(len(fccl.version()), 3)

    def test_row_range(self):
        self.assertEqual([fccl.row_range(10, 4, rank) for rank in range(4)], [(0, 3), (3, 3), (6, 2), (8, 2)])
        with self.assertRaises(fccl.InvalidArgument) as caught:
            fccl.row_range(-1, 2, 0)
        self.assertEqual(caught.exception.code, fccl.Result.INVALID_ARGUMENT)

    def test_questions(self):
        names = {variable["name"] for variable in fccl.variables()}
        self.assertTrue(any(name.endswith("ALGO") for name in names), names)
        json.loads(fccl.describe())
        self.assertGreater(fccl.workspace_bytes(2, backend=fccl.CPU), 0)
        args = fccl.fused_args(4, 64, fccl.FLOAT32, input=1, weight=1, norm_out=1)
        self.assertEqual(fccl.query_support(2, args, backend=fccl.CPU)["supported"], 1)

    def test_bad_arguments_are_refused_before_the_library_is_called(self):
        with self.assertRaises(ValueError):
            fccl.Communicator(2, 0, b"short")
        with self.assertRaises(TypeError):
            fccl.Communicator(2, 0)
        with self.assertRaises(TypeError):
            fccl.Communicator(1, 0, fccl.unique_id(), colour=1)

    def test_an_id_of_zeros_is_an_error_with_a_text(self):
        with self.assertRaises(fccl.Error) as caught:
            fccl.Communicator(1, 0, bytes(128), backend=fccl.CPU)
        self.assertGreater(len(str(caught.exception)), 20)

    def test_log_callback(self):
        fccl.set_log_callback(lambda level, line: None)
        fccl.set_log_callback(None)


class OneRank(unittest.TestCase):
    def setUp(self):
        self.comm = fccl.Communicator(1, 0, fccl.unique_id(), backend=fccl.CPU)
        self.addCleanup(self.comm.destroy)

    def test_questions(self):
        self.assertEqual((self.comm.ranks, self.comm.rank, self.comm.device, self.comm.backend), (1, 0, -1, fccl.CPU))
        self.assertEqual(self.comm.async_error(), fccl.Result.SUCCESS)
        self.assertEqual(self.comm.error_word()[0], 0)
        self.assertGreater(self.comm.memory()["capacity_bytes"], 0)
        json.loads(self.comm.describe())
        self.comm.set_timeout(5000)

    def test_memory(self):
        address = self.comm.mem_alloc(4096)
        window = self.comm.window_register(address, 4096)
        self.assertEqual(window.peer(0), address)
        window.deregister()
        self.comm.mem_free(address)

    def test_errors_have_code_and_text(self):
        x = floats([1, 2, 3, 4])
        with self.assertRaises(fccl.InvalidArgument) as caught:
            self.comm.all_reduce_residual_rms_norm(x, None, x, None, x, -1, 4, fccl.FLOAT32)
        self.assertIn("tokens", str(caught.exception))
        self.assertIn("tokens", self.comm.last_error())

    def test_destroy_twice_and_use_after(self):
        self.comm.destroy()
        self.comm.destroy()
        with self.assertRaises(ValueError):
            self.comm.rank

    def test_buffers_that_cannot_be_used(self):
        with self.assertRaises(ValueError):
            fccl._address(b"read only")
        with self.assertRaises(ValueError):
            fccl._address(memoryview(bytearray(8))[::2])


class TwoRanks(unittest.TestCase):
    def test_plain_collectives(self):
        def work(comm):
            rank = comm.rank
            out = floats([0] * 4)
            comm.all_reduce(floats([rank + 1.0] * 4), out, 4, fccl.FLOAT32)
            self.assertEqual(list(out), [3.0] * 4)
            comm.all_reduce(floats([rank + 1.0] * 4), out, 4, fccl.FLOAT32, fccl.MAX)
            self.assertEqual(list(out), [2.0] * 4)
            comm.all_gather(floats([rank, rank]), out, 2, fccl.FLOAT32)
            self.assertEqual(list(out), [0, 0, 1, 1])
            half = floats([0, 0])
            comm.reduce_scatter(floats([1, 2, 3, 4]), half, 2, fccl.FLOAT32)
            self.assertEqual(list(half), [2, 4] if rank == 0 else [6, 8])
            comm.broadcast(half, half, 2, fccl.FLOAT32, root=1)
            self.assertEqual(list(half), [6, 8])

        on_ranks(2, work)

    def test_fused_with_options(self):
        def work(comm):
            x, residual, bias = floats([1, 2, 3, 4]), floats([1] * 4), floats([2] * 4)
            h, out, total = floats([0] * 4), floats([0] * 4), floats([0] * 4)
            args = fccl.fused_args(1, 4, fccl.FLOAT32, input=x, residual=residual, bias=bias, weight=floats([0] * 4),
                                   weight_offset=1, residual_out=h, norm_out=out, allreduce_out=total, eps=0.0)
            plan = comm.query(args)
            self.assertEqual(plan["supported"], 1, plan)
            comm.all_reduce_residual_rms_norm_ex(args)
            self.assertEqual((list(total), list(h)), ([2, 4, 6, 8], [5, 7, 9, 11]))
            self.assertAlmostEqual(sum(v * v for v in out), 4, places=5)
            self.assertGreaterEqual(comm.stats()["calls"], 1)

        on_ranks(2, work)

    def test_split_and_finalize(self):
        def work(comm):
            alone = comm.split(comm.rank)
            self.assertEqual((alone.ranks, alone.rank), (1, 0))
            alone.destroy()
            self.assertIsNone(comm.split(-1))
            comm.finalize()

        on_ranks(2, work)

    def test_allgather_of_the_caller(self):
        gathered = {}
        meet = threading.Barrier(2, timeout=60)

        def worker(rank, out):
            def allgather(mine):
                gathered[rank] = mine
                meet.wait()
                everything = gathered[0] + gathered[1]
                meet.wait()
                return everything

            with fccl.Communicator(2, rank, allgather=allgather, backend=fccl.CPU) as comm:
                result = floats([0])
                comm.all_reduce(floats([rank + 1]), result, 1, fccl.FLOAT32)
                out[rank] = result[0]

        out = [None, None]
        threads = [threading.Thread(target=worker, args=(rank, out)) for rank in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(out, [3.0, 3.0])

    def test_an_exception_inside_frees_the_peer(self):
        def work(comm):
            if comm.rank == 0:
                raise KeyError("rank 0 gives up")
            x = floats([1.0])
            with self.assertRaises(fccl.Error):
                comm.all_reduce(x, x, 1, fccl.FLOAT32)

        with self.assertRaises(KeyError):
            on_ranks(2, work, call_timeout_ms=30000)

    def test_abort_frees_a_blocked_call(self):
        def work(comm):
            if comm.rank == 1:
                return
            timer = threading.Timer(0.2, comm.abort)
            timer.start()
            x = floats([1.0])
            with self.assertRaises(fccl.Error):
                comm.all_reduce(x, x, 1, fccl.FLOAT32)
            timer.join()

        on_ranks(2, work, call_timeout_ms=30000, destroy_timeout_ms=2000)

    def test_init_all(self):
        comms = fccl.init_all(2, backend=fccl.CPU)
        self.assertEqual([comm.rank for comm in comms], [0, 1])
        threads = [threading.Thread(target=comm.destroy) for comm in comms]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    sys.exit(unittest.main())
