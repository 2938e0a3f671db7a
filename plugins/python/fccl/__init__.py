"""fccl from Python: NCCL-style communicators whose main call fuses all_reduce, residual and RMSNorm.

Needs nothing but the standard library. Buffers are anything that exposes its memory: an integer
address, a ctypes object, a writable object with the buffer protocol (array.array, bytearray,
memoryview, numpy.ndarray), or a tensor with data_ptr() (torch). Calls on CPU ranks are complete when
they return; on a GPU they are issued to `stream` (an integer handle, default the legacy stream).

    import fccl
    with fccl.Communicator(ranks=2, rank=0, unique_id=uid, backend=fccl.CPU) as comm:
        comm.all_reduce_residual_rms_norm(x, residual, weight, residual_out, norm_out, tokens, hidden, fccl.FLOAT32)

Every failure is an exception of class Error (or a subclass) with the code and the library's text.
"""

import ctypes
import enum

from ._abi import ALLGATHER, LOG_CALLBACK, CommStats, Config, FusedArgs, MemoryInfo, PlanInfo, UniqueId, VariableInfo, load

__all__ = [
    "Communicator", "Window", "Error", "InvalidArgument", "InvalidUsage", "RemoteError", "Timeout", "Unsupported", "Mismatch",
    "Aborted", "Result", "DataType", "RedOp", "Backend", "Algorithm", "version", "unique_id", "row_range", "workspace_bytes",
    "query_support", "fused_args", "variables", "describe", "set_log_callback", "init_all", "INT8", "FLOAT16", "FLOAT32", "BFLOAT16", "SUM",
    "PROD", "MAX", "MIN", "AVG", "AUTO", "CPU", "CUDA", "HIP", "WEIGHT_STABLE", "INPUTS_STABLE", "EARLY_TRIGGER",
    "QUANT_AFTER_ROUNDING", "NUMERICS_FUSED", "NUMERICS_AS_UNFUSED", "RESIDUAL_REPLICATED", "RESIDUAL_ROW_SHARDED",
]


class Result(enum.IntEnum):
    SUCCESS = 0
    UNHANDLED_DEVICE_ERROR = 1
    SYSTEM_ERROR = 2
    INTERNAL_ERROR = 3
    INVALID_ARGUMENT = 4
    INVALID_USAGE = 5
    REMOTE_ERROR = 6
    IN_PROGRESS = 7
    TIMEOUT = 8
    UNSUPPORTED = 100
    MISMATCH = 101
    ABORTED = 102
    OUT_OF_RESOURCES = 103
    VERSION_MISMATCH = 104
    BUSY = 105


class DataType(enum.IntEnum):
    INT8 = 0
    UINT8 = 1
    INT32 = 2
    UINT32 = 3
    INT64 = 4
    UINT64 = 5
    FLOAT16 = 6
    FLOAT32 = 7
    FLOAT64 = 8
    BFLOAT16 = 9
    FLOAT8E4M3 = 10
    FLOAT8E5M2 = 11
    INT8_OUTPUT = 100
    FLOAT4E2M1 = 101


class RedOp(enum.IntEnum):
    SUM = 0
    PROD = 1
    MAX = 2
    MIN = 3
    AVG = 4


class Backend(enum.IntEnum):
    AUTO = 0
    CPU = 1
    CUDA = 2
    HIP = 3


class Algorithm(enum.IntEnum):
    NONE = 0
    LOCAL = 1
    ONESHOT_LAMPORT = 2
    ONESHOT_LL = 3
    ONESHOT_FLAGS = 4
    TWOSHOT_ROWS = 5
    TWOSHOT_COLS = 6
    TWOSHOT_ROWS_LAMPORT = 7
    TWOSHOT_COLS_LAMPORT = 8


INT8, FLOAT16, FLOAT32, BFLOAT16 = DataType.INT8, DataType.FLOAT16, DataType.FLOAT32, DataType.BFLOAT16
SUM, PROD, MAX, MIN, AVG = RedOp
AUTO, CPU, CUDA, HIP = Backend
WEIGHT_STABLE, INPUTS_STABLE, EARLY_TRIGGER, QUANT_AFTER_ROUNDING = 1, 2, 4, 8
NUMERICS_FUSED, NUMERICS_AS_UNFUSED = 0, 1
RESIDUAL_REPLICATED, RESIDUAL_ROW_SHARDED = 0, 1

_lib = load()


class Error(RuntimeError):
    """A call that failed: `code` (a Result where it is known), and the library's text."""

    def __init__(self, code, function, text):
        super().__init__(f"{function}: {text or _lib.fcclGetErrorString(code).decode()}")
        self.code = Result(code) if code in Result._value2member_map_ else code


class InvalidArgument(Error):
    pass


class InvalidUsage(Error):
    pass


class RemoteError(Error):
    pass


class Timeout(Error):
    pass


class Unsupported(Error):
    pass


class Mismatch(Error):
    pass


class Aborted(Error):
    pass


_CLASSES = {
    Result.INVALID_ARGUMENT: InvalidArgument,
    Result.INVALID_USAGE: InvalidUsage,
    Result.REMOTE_ERROR: RemoteError,
    Result.TIMEOUT: Timeout,
    Result.UNSUPPORTED: Unsupported,
    Result.MISMATCH: Mismatch,
    Result.ABORTED: Aborted,
}


def _raise(code, function, comm):
    text = _lib.fcclGetLastError(comm).decode(errors="replace")
    raise _CLASSES.get(code, Error)(code, function, text)


def _call(function, *arguments, comm=None, fine=(Result.SUCCESS,)):
    code = getattr(_lib, function)(*arguments)
    if code not in fine:
        _raise(code, function, comm)
    return code


def _address(buffer):
    """The address of a buffer; None stays None."""
    if buffer is None or isinstance(buffer, int):
        return buffer
    if hasattr(buffer, "data_ptr"):
        return buffer.data_ptr()
    if isinstance(buffer, (ctypes._SimpleCData, ctypes.Array, ctypes.Structure)):
        return ctypes.addressof(buffer)
    view = memoryview(buffer)
    if not view.c_contiguous:
        raise ValueError("the buffer is not contiguous: pass its address and strides instead")
    if view.readonly:
        raise ValueError("the buffer is read-only: its address cannot be taken; pass a writable one")
    return ctypes.addressof((ctypes.c_char * view.nbytes).from_buffer(buffer)) if view.nbytes else None


_SWITCHES = ("blocking", "shared_device", "check", "deterministic")


def _config(values):
    """The C struct of settings; switches may be bools, `device` is an ordinal."""
    if not values:
        return None
    values = dict(values)
    for name in _SWITCHES:
        if isinstance(values.get(name), bool):
            values[name] = 1 if values[name] else -1
    if "device" in values:
        values["device"] = 0 if values["device"] is None else values["device"] + 1
    if isinstance(values.get("name"), str):
        values["name"] = values["name"].encode()
    unknown = set(values) - {field[0] for field in Config._fields_[3:]}
    if unknown:
        raise TypeError("unknown settings: " + ", ".join(sorted(unknown)))
    return ctypes.byref(Config(**values))


def _plain(struct):
    """A growing struct as a dict, without its head; texts decoded."""
    out = {}
    for name, _ in struct._fields_[3:]:
        value = getattr(struct, name)
        out[name] = value.decode(errors="replace") if isinstance(value, bytes) else list(value) if hasattr(value, "_length_") else value
    return out


def version():
    """(major, minor, patch) of the loaded library."""
    number = ctypes.c_int()
    _call("fcclGetVersion", ctypes.byref(number))
    return number.value // 10000, number.value // 100 % 100, number.value % 100


def unique_id():
    """A new unique id as bytes: a secret. Its rendezvous lives in this process until init is done."""
    uid = UniqueId()
    _call("fcclGetUniqueId", ctypes.byref(uid))
    return ctypes.string_at(ctypes.addressof(uid), ctypes.sizeof(uid))


def row_range(tokens, ranks, rank):
    """(first, count) of the rows of `rank`."""
    first, count = ctypes.c_int64(), ctypes.c_int64()
    _call("fcclRowRange", tokens, ranks, rank, ctypes.byref(first), ctypes.byref(count))
    return first.value, count.value


def workspace_bytes(ranks, **config):
    number = ctypes.c_int64()
    _call("fcclWorkspaceBytes", ranks, _config(config), ctypes.byref(number))
    return number.value


def query_support(ranks, args, **config):
    """What the fused call with `args` (from fused_args()) would do on `ranks` ranks of this host."""
    info = PlanInfo()
    _call("fcclQuerySupport", ranks, _config(config), ctypes.byref(args), ctypes.byref(info))
    return _plain(info)


def variables():
    """All environment variables of the library, as dicts."""
    out = []
    while True:
        info = VariableInfo()
        if _lib.fcclVariable(len(out), ctypes.byref(info)) != Result.SUCCESS:
            return out
        out.append(_plain(info))


def _describe(comm):
    needed = ctypes.c_size_t()
    _call("fcclDescribe", comm, None, 0, ctypes.byref(needed), comm=comm)
    text = ctypes.create_string_buffer(needed.value + 1)
    _call("fcclDescribe", comm, text, len(text), ctypes.byref(needed), comm=comm)
    return text.value.decode(errors="replace")


def describe():
    """JSON text: what the library knows of this machine."""
    return _describe(None)


_log = None


def set_log_callback(function):
    """`function(level, line)` gets the log lines, from any thread; None: back to the default."""
    global _log
    callback = LOG_CALLBACK(lambda _, level, line: function(level, line.decode(errors="replace"))) if function else LOG_CALLBACK()
    _call("fcclSetLogCallback", callback, None)
    _log = callback  # kept alive as long as the library may call it


def fused_args(tokens, hidden, datatype, *, input=None, residual=None, weight=None, bias=None, residual_out=None, norm_out=None,
               allreduce_out=None, eps=1e-5, input_stride=0, residual_stride=0, weight_type=0, bias_type=0, weight_offset=0,
               numerics=0, residual_layout=0, flags=0, valid_tokens=None):
    """The arguments of the fused call as the C struct, which keeps the buffers alive."""
    args = FusedArgs(tokens=tokens, hidden=hidden, datatype=datatype, eps=eps, input_stride=input_stride,
                     residual_stride=residual_stride, weight_type=weight_type, bias_type=bias_type, weight_offset=weight_offset,
                     numerics=numerics, residual_layout=residual_layout, flags=flags)
    args.input, args.residual, args.weight = _address(input), _address(residual), _address(weight)
    args.bias, args.valid_tokens = _address(bias), _address(valid_tokens)
    args.residual_out.ptr, args.norm_out.ptr = _address(residual_out), _address(norm_out)
    args.allreduce_out.ptr = _address(allreduce_out)
    args.buffers = (input, residual, weight, bias, residual_out, norm_out, allreduce_out, valid_tokens)
    return args


class Window:
    """Memory of a communicator that its peers have mapped."""

    def __init__(self, comm, handle):
        self._comm, self._handle = comm, handle

    def peer(self, rank):
        """The address of the window of `rank`, here."""
        address = ctypes.c_void_p()
        _call("fcclCommWindowPeer", self._comm.handle, self._handle, rank, ctypes.byref(address), comm=self._comm.handle)
        return address.value

    def deregister(self):
        handle, self._handle = self._handle, None
        if handle is not None:
            _call("fcclCommWindowDeregister", self._comm.handle, handle, comm=self._comm.handle)


class Communicator:
    """One rank of a communicator. A context manager: leaving it destroys the rank, or aborts it first
    if an exception is on its way, so that peers do not wait in vain.

    Made by a unique id (bytes), or by `allgather`, a function that takes this rank's bytes and returns
    those of all ranks, joined in rank order. Further keywords are the fields of fcclConfig; there
    `device` is an ordinal and the switches may be True or False."""

    def __init__(self, ranks, rank, unique_id=None, allgather=None, **config):
        self._handle = ctypes.c_void_p()
        self._failure = None
        if (unique_id is None) == (allgather is None):
            raise TypeError("give unique_id or allgather")
        if allgather is not None:
            self._init_allgather(ranks, rank, allgather, config)
            return
        if len(unique_id) != ctypes.sizeof(UniqueId):
            raise ValueError(f"a unique id has {ctypes.sizeof(UniqueId)} bytes, this has {len(unique_id)}")
        uid = UniqueId.from_buffer_copy(unique_id)
        _call("fcclCommInitRankConfig", ctypes.byref(self._handle), ranks, ctypes.byref(uid), rank, _config(config),
              fine=(Result.SUCCESS, Result.IN_PROGRESS))

    def _init_allgather(self, ranks, rank, allgather, config):
        def gather(_, send, receive, count):
            try:
                everything = allgather(ctypes.string_at(send, count))
                if len(everything) != count * ranks:
                    raise ValueError(f"allgather gave {len(everything)} bytes, {count * ranks} were expected")
                ctypes.memmove(receive, everything, len(everything))
                return 0
            except Exception as failure:  # must not pass through C
                self._failure = failure
                return 1

        code = _lib.fcclCommInitAllgather(ctypes.byref(self._handle), ranks, rank, ALLGATHER(gather), None, _config(config))
        if code not in (Result.SUCCESS, Result.IN_PROGRESS):
            try:
                _raise(code, "fcclCommInitAllgather", None)
            except Error as error:
                raise error from self._failure

    @classmethod
    def _of(cls, handle):
        comm = cls.__new__(cls)
        comm._handle, comm._failure = handle, None
        return comm

    @property
    def handle(self):
        """The fcclComm_t, for other libraries."""
        if not self._handle:
            raise ValueError("this communicator was destroyed")
        return self._handle

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if not self._handle:
            return False
        if kind is not None:
            self.abort()
            _lib.fcclCommDestroy(self._handle)
            self._handle = ctypes.c_void_p()
        else:
            self.destroy()
        return False

    # ---- life

    def split(self, color, key=0, **config):
        """A new communicator of the ranks with this color; None for color < 0."""
        handle = ctypes.c_void_p()
        _call("fcclCommSplit", self.handle, color, key, ctypes.byref(handle), _config(config), comm=self.handle)
        return Communicator._of(handle) if handle else None

    def finalize(self):
        _call("fcclCommFinalize", self.handle, comm=self.handle)

    def destroy(self):
        """Frees the communicator; may be called twice."""
        handle, self._handle = self._handle, ctypes.c_void_p()
        if handle:
            _call("fcclCommDestroy", handle)

    def abort(self):
        """Marks the communicator as aborted; blocked calls return. Any thread may call it."""
        _call("fcclCommAbort", self.handle)

    def async_error(self):
        """The state as a Result: SUCCESS, IN_PROGRESS, or the failure."""
        code = ctypes.c_int()
        _call("fcclCommGetAsyncError", self.handle, ctypes.byref(code))
        return Result(code.value)

    def error_word(self):
        """A word in host memory that is 0 while all is well, as a ctypes pointer."""
        word = ctypes.POINTER(ctypes.c_uint32)()
        _call("fcclCommErrorWord", self.handle, ctypes.byref(word))
        return word

    def last_error(self):
        return _lib.fcclGetLastError(self.handle).decode(errors="replace")

    def set_timeout(self, milliseconds):
        _call("fcclCommSetTimeout", self.handle, milliseconds, comm=self.handle)

    # ---- questions

    def _integer(self, function, kind=ctypes.c_int):
        value = kind()
        _call(function, self.handle, ctypes.byref(value), comm=self.handle)
        return value.value

    @property
    def ranks(self):
        return self._integer("fcclCommCount")

    @property
    def rank(self):
        return self._integer("fcclCommUserRank")

    @property
    def device(self):
        return self._integer("fcclCommDevice")

    @property
    def backend(self):
        return Backend(self._integer("fcclCommBackend", ctypes.c_int32))

    def memory(self):
        info = MemoryInfo()
        _call("fcclCommMemory", self.handle, ctypes.byref(info), comm=self.handle)
        return _plain(info)

    def stats(self):
        info = CommStats()
        _call("fcclCommGetStats", self.handle, ctypes.byref(info), comm=self.handle)
        return _plain(info)

    def query(self, args):
        """What the fused call with `args` (from fused_args()) will do."""
        info = PlanInfo()
        _call("fcclCommQuery", self.handle, ctypes.byref(args), ctypes.byref(info), comm=self.handle)
        return _plain(info)

    def describe(self):
        return _describe(self.handle)

    # ---- memory

    def mem_alloc(self, count):
        address = ctypes.c_void_p()
        _call("fcclMemAlloc", self.handle, ctypes.byref(address), count, comm=self.handle)
        return address.value

    def mem_free(self, address):
        _call("fcclMemFree", self.handle, address, comm=self.handle)

    def window_register(self, address, count):
        handle = ctypes.c_void_p()
        _call("fcclCommWindowRegister", self.handle, address, count, ctypes.byref(handle), comm=self.handle)
        return Window(self, handle)

    # ---- operations

    def all_reduce_residual_rms_norm(self, input, residual, weight, residual_out, norm_out, tokens, hidden, datatype, eps=1e-5,
                                     stream=None):
        """residual_out = sum of input over the ranks + residual; norm_out = its RMSNorm times weight."""
        _call("fcclAllReduceResidualRMSNorm", _address(input), _address(residual), _address(weight), _address(residual_out),
              _address(norm_out), tokens, hidden, datatype, eps, self.handle, stream, comm=self.handle)

    def all_reduce_residual_rms_norm_ex(self, args, stream=None):
        """The same with everything that fcclFusedArgs offers; `args` from fused_args()."""
        _call("fcclAllReduceResidualRMSNormEx", ctypes.byref(args), self.handle, stream, comm=self.handle)

    def all_reduce(self, send, receive, count, datatype, op=SUM, stream=None):
        _call("fcclAllReduce", _address(send), _address(receive), count, datatype, op, self.handle, stream, comm=self.handle)

    def reduce_scatter(self, send, receive, receive_count, datatype, op=SUM, stream=None):
        _call("fcclReduceScatter", _address(send), _address(receive), receive_count, datatype, op, self.handle, stream,
              comm=self.handle)

    def all_gather(self, send, receive, send_count, datatype, stream=None):
        _call("fcclAllGather", _address(send), _address(receive), send_count, datatype, self.handle, stream, comm=self.handle)

    def broadcast(self, send, receive, count, datatype, root=0, stream=None):
        _call("fcclBroadcast", _address(send), _address(receive), count, datatype, root, self.handle, stream, comm=self.handle)


def init_all(ranks, devices=None, **config):
    """One communicator for each device of this process, as a list. CPU ranks need a thread each."""
    handles = (ctypes.c_void_p * ranks)()
    ordinals = (ctypes.c_int * ranks)(*devices) if devices is not None else None
    _call("fcclCommInitAllConfig", handles, ranks, ordinals, _config(config))
    return [Communicator._of(ctypes.c_void_p(handle)) for handle in handles]
