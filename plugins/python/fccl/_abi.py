"""The C interface of libfccl in ctypes: constants, structs, function prototypes. Mirrors
include/fccl/fccl.h and nothing else; the sizes of the structs are checked against the header by a test.
"""

import ctypes
import ctypes.util
import os
from ctypes import POINTER, c_char, c_char_p, c_float, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

UNIQUE_ID_BYTES = 128

CONFIG_MAGIC = 0xFCC10001
FUSED_ARGS_MAGIC = 0xFCC10002
PLAN_INFO_MAGIC = 0xFCC10003
MEMORY_INFO_MAGIC = 0xFCC10004
VARIABLE_INFO_MAGIC = 0xFCC10005
COMM_STATS_MAGIC = 0xFCC10006
HEADER_VERSION = 1


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", c_char * UNIQUE_ID_BYTES)]


class Growing(ctypes.Structure):
    """A struct that begins with size, magic and version; filled in when it is made."""

    def __init__(self, **values):
        super().__init__(**values)
        self.size = ctypes.sizeof(self)
        self.magic = self.MAGIC
        self.version = HEADER_VERSION


_HEAD = [("size", c_size_t), ("magic", c_uint32), ("version", c_uint32)]


class Config(Growing):
    MAGIC = CONFIG_MAGIC
    _fields_ = _HEAD + [
        ("backend", c_int32),
        ("device", c_int32),
        ("blocking", c_int32),
        ("shared_device", c_int32),
        ("check", c_int32),
        ("deterministic", c_int32),
        ("max_blocks", c_int32),
        ("datatype", c_int32),
        ("max_tokens", c_int64),
        ("hidden", c_int64),
        ("init_timeout_ms", c_int64),
        ("call_timeout_ms", c_int64),
        ("destroy_timeout_ms", c_int64),
        ("name", c_char_p),
    ]


class Output(ctypes.Structure):
    _fields_ = [
        ("type", c_int32),
        ("scale_type", c_int32),
        ("scale_layout", c_int32),
        ("group_size", c_int32),
        ("row_stride", c_int64),
        ("ptr", c_void_p),
        ("scale", c_void_p),
    ]


class FusedArgs(Growing):
    MAGIC = FUSED_ARGS_MAGIC
    _fields_ = _HEAD + [
        ("tokens", c_int64),
        ("hidden", c_int64),
        ("input_stride", c_int64),
        ("residual_stride", c_int64),
        ("datatype", c_int32),
        ("weight_type", c_int32),
        ("bias_type", c_int32),
        ("weight_offset", c_int32),
        ("numerics", c_int32),
        ("residual_layout", c_int32),
        ("flags", c_uint32),
        ("eps", c_float),
        ("residual_out", Output),
        ("norm_out", Output),
        ("allreduce_out", Output),
        ("quant_out", Output),
        ("input", c_void_p),
        ("residual", c_void_p),
        ("weight", c_void_p),
        ("bias", c_void_p),
        ("valid_tokens", c_void_p),
    ]


class PlanInfo(Growing):
    MAGIC = PLAN_INFO_MAGIC
    _fields_ = _HEAD + [
        ("supported", c_int32),
        ("algorithm", c_int32),
        ("blocks", c_int32),
        ("threads", c_int32),
        ("launches", c_int64),
        ("chunk_tokens", c_int64),
        ("capacity_bytes", c_int64),
        ("wire_bytes", c_int64),
        ("algorithm_name", c_char * 32),
        ("reason", c_char * 256),
    ]


class MemoryInfo(Growing):
    MAGIC = MEMORY_INFO_MAGIC
    _fields_ = _HEAD + [
        ("workspace_bytes", c_int64),
        ("granule_bytes", c_int64),
        ("mapped_bytes", c_int64),
        ("user_window_bytes", c_int64),
        ("capacity_bytes", c_int64),
    ]


class VariableInfo(Growing):
    MAGIC = VARIABLE_INFO_MAGIC
    _fields_ = _HEAD + [
        ("from_environment", c_int32),
        ("agreed", c_int32),
        ("name", c_char * 48),
        ("type", c_char * 16),
        ("value", c_char * 256),
        ("fallback", c_char * 64),
        ("doc", c_char * 256),
    ]


class CommStats(Growing):
    MAGIC = COMM_STATS_MAGIC
    _fields_ = _HEAD + [
        ("calls", c_uint64),
        ("launches", c_uint64),
        ("by_algorithm", c_uint64 * 16),
        ("slow_rows", c_uint64),
        ("unfused", c_uint64),
    ]


ALLGATHER = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_size_t)
LOG_CALLBACK = ctypes.CFUNCTYPE(None, c_void_p, c_int32, c_char_p)

_comm = c_void_p
_window = c_void_p
_stream = c_void_p

# name: argument types; every one of these returns a result code.
FUNCTIONS = {
    "fcclGetVersion": [POINTER(c_int)],
    "fcclSetLogCallback": [LOG_CALLBACK, c_void_p],
    "fcclGetUniqueId": [POINTER(UniqueId)],
    "fcclCommInitRank": [POINTER(_comm), c_int, UniqueId, c_int],
    "fcclCommInitRankConfig": [POINTER(_comm), c_int, POINTER(UniqueId), c_int, POINTER(Config)],
    "fcclCommInitAll": [POINTER(_comm), c_int, POINTER(c_int)],
    "fcclCommInitAllConfig": [POINTER(_comm), c_int, POINTER(c_int), POINTER(Config)],
    "fcclCommInitAllgather": [POINTER(_comm), c_int, c_int, ALLGATHER, c_void_p, POINTER(Config)],
    "fcclCommSplit": [_comm, c_int, c_int, POINTER(_comm), POINTER(Config)],
    "fcclCommFinalize": [_comm],
    "fcclCommDestroy": [_comm],
    "fcclCommAbort": [_comm],
    "fcclCommGetAsyncError": [_comm, POINTER(c_int)],
    "fcclCommErrorWord": [_comm, POINTER(POINTER(c_uint32))],
    "fcclCommSetTimeout": [_comm, c_int64],
    "fcclCommCount": [_comm, POINTER(c_int)],
    "fcclCommUserRank": [_comm, POINTER(c_int)],
    "fcclCommDevice": [_comm, POINTER(c_int)],
    "fcclCommBackend": [_comm, POINTER(c_int32)],
    "fcclWorkspaceBytes": [c_int, POINTER(Config), POINTER(c_int64)],
    "fcclCommMemory": [_comm, POINTER(MemoryInfo)],
    "fcclCommQuery": [_comm, POINTER(FusedArgs), POINTER(PlanInfo)],
    "fcclQuerySupport": [c_int, POINTER(Config), POINTER(FusedArgs), POINTER(PlanInfo)],
    "fcclCommGetStats": [_comm, POINTER(CommStats)],
    "fcclVariable": [c_int, POINTER(VariableInfo)],
    "fcclDescribe": [_comm, c_char_p, c_size_t, POINTER(c_size_t)],
    "fcclMemAlloc": [_comm, POINTER(c_void_p), c_size_t],
    "fcclMemFree": [_comm, c_void_p],
    "fcclCommWindowRegister": [_comm, c_void_p, c_size_t, POINTER(_window)],
    "fcclCommWindowPeer": [_comm, _window, c_int, POINTER(c_void_p)],
    "fcclCommWindowDeregister": [_comm, _window],
    "fcclRowRange": [c_int64, c_int, c_int, POINTER(c_int64), POINTER(c_int64)],
    "fcclAllReduceResidualRMSNorm": [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_int64, c_int64, c_int, c_float,
                                     _comm, _stream],
    "fcclAllReduceResidualRMSNormEx": [POINTER(FusedArgs), _comm, _stream],
    "fcclAllReduce": [c_void_p, c_void_p, c_size_t, c_int, c_int, _comm, _stream],
    "fcclReduceScatter": [c_void_p, c_void_p, c_size_t, c_int, c_int, _comm, _stream],
    "fcclAllGather": [c_void_p, c_void_p, c_size_t, c_int, _comm, _stream],
    "fcclBroadcast": [c_void_p, c_void_p, c_size_t, c_int, c_int, _comm, _stream],
}


def load():
    """Opens libfccl: FCCL_LIBRARY if set, else beside this package's installation, else by the linker."""
    here = os.path.dirname(os.path.abspath(__file__))
    wanted = os.environ.get("FCCL_LIBRARY")
    names = [wanted] if wanted else [os.path.join(here, "libfccl.so.0"), "libfccl.so.0", "libfccl.so"]
    problems = []
    for name in names:
        try:
            library = ctypes.CDLL(name)
            break
        except OSError as error:
            problems.append(str(error))
    else:
        raise ImportError("libfccl was not found; set FCCL_LIBRARY to its path (" + "; ".join(problems) + ")")
    for name, arguments in FUNCTIONS.items():
        function = getattr(library, name)
        function.argtypes = arguments
        function.restype = c_int
    library.fcclGetErrorString.argtypes = [c_int]
    library.fcclGetErrorString.restype = c_char_p
    library.fcclGetLastError.argtypes = [_comm]
    library.fcclGetLastError.restype = c_char_p
    return library
