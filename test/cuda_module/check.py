"""What a host without a driver hears of libfccl_cuda.so: check.py LIBFCCL MODULE.

Asking for the CUDA backend is an error of init with a reason, not a failure to load, and the automatic
choice still makes a communicator. With a driver the first may succeed.
"""
import ctypes
import os
import sys

UNSUPPORTED = 100


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


def init(library):
    identity = UniqueId()
    assert library.fcclGetUniqueId(ctypes.byref(identity)) == 0, library.fcclGetLastError(None)
    comm = ctypes.c_void_p()
    code = library.fcclCommInitRank(ctypes.byref(comm), 1, identity, 0)
    text = library.fcclGetLastError(None).decode()
    if code == 0:
        assert library.fcclCommDestroy(comm) == 0
    return code, text


def main(libfccl, module):
    os.environ["FCCL_BACKEND_DIR"] = os.path.dirname(module)
    os.environ["FCCL_BACKEND"] = "cuda"
    library = ctypes.CDLL(libfccl)
    library.fcclGetLastError.restype = ctypes.c_char_p
    library.fcclCommInitRank.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, UniqueId, ctypes.c_int]
    library.fcclCommDestroy.argtypes = [ctypes.c_void_p]
    code, text = init(library)
    print(f"with FCCL_BACKEND=cuda: {code} {text}")
    if not os.path.exists("/proc/driver/nvidia/version"):
        assert code == UNSUPPORTED and "no NVIDIA driver" in text, text
    else:
        assert code == 0 or "GPU" in text or "driver" in text, text
    del os.environ["FCCL_BACKEND"]
    code, text = init(library)
    assert code == 0, text


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
