# SPDX-License-Identifier: Apache-2.0
"""The C library: where it is, its structs and functions, its statuses as exceptions.

The structs are those of vernier.h; tests/tools/python.sh compares their layout with a C compiler's.
"""
from __future__ import annotations

import ctypes
import ctypes.util
import os
from ctypes import c_char, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

__all__ = ["lib", "check", "Error", "InvalidError", "UnsupportedError", "NoDeviceError", "NoMemoryError",
           "FailedError", "version", "library_path", "command_path"]

VERSION = "0.1"                 # of vernier.h, whose structs are below
RANK = 6
HOST_ALIGN = 128


class Error(RuntimeError):
    """What the C library refused or failed at; its text is the library's own sentence."""

    status = ""


class InvalidError(Error, ValueError):
    """An argument makes no sense (VN_INVALID)."""

    status = "VN_INVALID"


class UnsupportedError(Error, NotImplementedError):
    """This device cannot do that (VN_UNSUPPORTED)."""

    status = "VN_UNSUPPORTED"


class NoDeviceError(Error, LookupError):
    """There is no such device (VN_NO_DEVICE)."""

    status = "VN_NO_DEVICE"


class NoMemoryError(Error, MemoryError):
    """Host or device memory ran out (VN_NO_MEMORY)."""

    status = "VN_NO_MEMORY"


class FailedError(Error):
    """The device or its driver failed, or this is a forked process (VN_FAILED)."""

    status = "VN_FAILED"


ERRORS = (None, InvalidError, UnsupportedError, NoDeviceError, NoMemoryError, FailedError)
MATHS = ("default", "tf32", "bitwise")
ACTIVATIONS = ("identity", "relu", "gelu", "silu", "sigmoid", "tanh")
CAUSALS = ("none", "last", "first")
TYPES = ("f32", "f16", "bf16", "f64")


class CDeviceInfo(ctypes.Structure):
    C = "vn_device_info"
    _fields_ = [("spec", c_char * 32), ("name", c_char * 128), ("vendor", c_char * 64), ("driver", c_char * 64),
                ("platform", c_char * 64), ("compute_units", c_int), ("memory", c_int64),
                ("local_memory", c_int64), ("is_cpu", c_int), ("has_f64", c_int), ("uuid", c_char * 36),
                ("pci", c_char * 16)]


Extents = c_int64 * RANK


class CTensor(ctypes.Structure):
    C = "vn_tensor"
    _fields_ = [("buffer", c_void_p), ("type", c_int), ("rank", c_int), ("start", c_int64), ("extent", Extents),
                ("stride", Extents)]


class CGemmOptions(ctypes.Structure):
    C = "vn_gemm_options"
    _fields_ = [("math", c_int), ("bias", CTensor), ("activation", c_int), ("size", c_uint32),
                ("variant", c_char_p), ("packed_b", c_void_p), ("residual", CTensor), ("scale", CTensor)]


class CConvOptions(ctypes.Structure):
    C = "vn_conv_options"
    _fields_ = [("stride", c_int * 3), ("dilation", c_int * 3), ("pad_before", c_int * 3), ("pad_after", c_int * 3),
                ("groups", c_int), ("math", c_int), ("bias", CTensor), ("activation", c_int), ("size", c_uint32),
                ("variant", c_char_p), ("residual", CTensor), ("packed_w", c_void_p)]


class CSoftmaxOptions(ctypes.Structure):
    C = "vn_softmax_options"
    _fields_ = [("axis", c_int), ("log", c_int), ("scale", c_double), ("mask", CTensor), ("causal", c_int),
                ("variant", c_char_p)]


class CInts(ctypes.Structure):
    C = "vn_ints"
    _fields_ = [("buffer", c_void_p), ("start", c_int64), ("count", c_int64), ("stride", c_int64), ("bytes", c_int),
                ("unused", c_int)]


class CAttentionOptions(ctypes.Structure):
    C = "vn_attention_options"
    _fields_ = [("size", c_size_t), ("scale", c_double), ("causal", c_int), ("window", c_int64), ("softcap", c_double),
                ("mask", CTensor), ("lse", CTensor), ("sinks", CTensor), ("key_lengths", CInts), ("query_lengths", CInts),
                ("pages", CInts), ("math", c_int), ("variant", c_char_p)]


class CCrossEntropyOptions(ctypes.Structure):
    C = "vn_cross_entropy_options"
    _fields_ = [("size", c_size_t), ("smoothing", c_double), ("z_loss", c_double), ("ignore", c_int64),
                ("weights", CTensor), ("lse", CTensor), ("variant", c_char_p)]


STRUCTS = (CDeviceInfo, CTensor, CGemmOptions, CConvOptions, CSoftmaxOptions, CAttentionOptions, CInts,
           CCrossEntropyOptions)

STATUS = c_int32                # what a function returns that can fail
_P = ctypes.POINTER
_FUNCTIONS = {
    "vn_version": (c_char_p, []),
    "vn_last_error": (c_char_p, []),
    "vn_device_count": (c_int, []),
    "vn_device_get": (STATUS, [_P(CDeviceInfo), c_int]),
    "vn_device_describe": (STATUS, [_P(CDeviceInfo), c_void_p]),
    "vn_device_open": (STATUS, [_P(c_void_p), c_char_p]),
    "vn_device_close": (None, [c_void_p]),
    "vn_queue_open": (STATUS, [_P(c_void_p), c_void_p]),
    "vn_queue_close": (None, [c_void_p]),
    "vn_queue_finish": (STATUS, [c_void_p]),
    "vn_queue_prepare": (STATUS, [c_void_p, c_int]),
    "vn_queue_wait": (STATUS, [c_void_p, c_void_p]),
    "vn_queue_limit_workspace": (STATUS, [c_void_p, c_size_t]),
    "vn_queue_use_workspace": (STATUS, [c_void_p, c_void_p]),
    "vn_queue_workspace": (c_size_t, [c_void_p]),
    "vn_queue_explain": (c_char_p, [c_void_p]),
    "vn_event_record": (STATUS, [_P(c_void_p), c_void_p]),
    "vn_event_finish": (STATUS, [c_void_p]),
    "vn_event_seconds": (STATUS, [_P(c_double), c_void_p, c_void_p]),
    "vn_event_close": (None, [c_void_p]),
    "vn_buffer_open": (STATUS, [_P(c_void_p), c_void_p, c_size_t]),
    "vn_buffer_open_host": (STATUS, [_P(c_void_p), c_void_p, c_void_p, c_size_t]),
    "vn_buffer_close": (None, [c_void_p]),
    "vn_write": (STATUS, [c_void_p, c_void_p, c_size_t, c_void_p, c_size_t]),
    "vn_read": (STATUS, [c_void_p, c_void_p, c_void_p, c_size_t, c_size_t]),
    "vn_gemm": (STATUS, [c_void_p, c_double, CTensor, CTensor, c_double, CTensor, _P(CGemmOptions)]),
    "vn_conv_forward": (STATUS, [c_void_p, c_double, CTensor, CTensor, c_double, CTensor, _P(CConvOptions)]),
    "vn_conv_backward_data": (STATUS, [c_void_p, c_double, CTensor, CTensor, c_double, CTensor,
                                       _P(CConvOptions)]),
    "vn_conv_backward_filter": (STATUS, [c_void_p, c_double, CTensor, CTensor, c_double, CTensor,
                                         _P(CConvOptions)]),
    "vn_conv_pack_open": (STATUS, [_P(c_void_p), c_void_p, c_int, CTensor, CTensor, CTensor, _P(CConvOptions)]),
    "vn_pack_close": (None, [c_void_p]),
    "vn_pack_bytes": (c_size_t, [c_void_p]),
    "vn_attention": (STATUS, [c_void_p, CTensor, CTensor, CTensor, CTensor, _P(CAttentionOptions)]),
    "vn_attention_backward": (STATUS, [c_void_p, *(CTensor,) * 8, _P(CAttentionOptions)]),
    "vn_cross_entropy": (STATUS, [c_void_p, CTensor, CInts, CTensor, CTensor, _P(CCrossEntropyOptions)]),
    "vn_softmax": (STATUS, [c_void_p, CTensor, CTensor, _P(CSoftmaxOptions)]),
    "vn_opencl_device_open": (STATUS, [_P(c_void_p), c_void_p, c_void_p]),
    "vn_opencl_queue_open": (STATUS, [_P(c_void_p), c_void_p, c_void_p]),
    "vn_opencl_buffer_open": (STATUS, [_P(c_void_p), c_void_p, c_void_p]),
    "vn_cuda_device_open": (STATUS, [_P(c_void_p), c_void_p]),
    "vn_cuda_queue_open": (STATUS, [_P(c_void_p), c_void_p, c_void_p]),
    "vn_cuda_buffer_open": (STATUS, [_P(c_void_p), c_void_p, c_uint64, c_size_t]),
    "vn_softmax_backward": (STATUS, [c_void_p, CTensor, CTensor, CTensor, _P(CSoftmaxOptions)]),
}

_HERE = Path(__file__).resolve().parent / "_installed"


def library_path() -> str:
    """The file of the C library: $VERNIER_LIBRARY, the wheel's own, or what the system has.

    >>> "vernier" in library_path()
    True
    """
    own = _HERE / "libvernier.so.0"
    named = os.environ.get("VERNIER_LIBRARY")
    if named:
        return named
    if own.exists():
        return str(own)
    return ctypes.util.find_library("vernier") or "libvernier.so.0"


def command_path() -> str:
    """The file of the command `vernier`: the wheel's own, or what $PATH has."""
    own = _HERE / "vernier"
    return str(own) if own.exists() else "vernier"


def _load() -> Any:
    path = library_path()
    try:
        it = ctypes.CDLL(path)
    except OSError as why:
        raise ImportError(f"{path} cannot be loaded: {why}; it needs libOpenCL (Debian, Ubuntu: "
                          "apt-get install ocl-icd-libopencl1, and pocl-opencl-icd for CPUs), or the file of "
                          "the library in VERNIER_LIBRARY") from None
    for name, (result, arguments) in _FUNCTIONS.items():
        try:
            function = getattr(it, name)
        except AttributeError:
            raise ImportError(f"{path} has no {name}(); it needs the library of this package's version") from None
        function.restype = result
        function.argtypes = arguments
    found = it.vn_version().decode()
    if not found.startswith(VERSION + "."):
        raise ImportError(f"{path} is Vernier {found}; this package needs {VERSION}")
    return it


lib = _load()


def version() -> str:
    """The version of the C library, such as "0.1.0".

    >>> version().count(".")
    2
    """
    return str(lib.vn_version().decode())


_FORKED = ("; Python's multiprocessing does so with the start method \"spawn\" or \"forkserver\": "
           "multiprocessing.set_start_method(\"spawn\")")
_forked = False


def _in_child() -> None:
    global _forked
    _forked = True


os.register_at_fork(after_in_child=_in_child)


def check(status: int) -> None:
    """Raises the exception of a status, with the library's sentence."""
    if status:
        sentence = lib.vn_last_error().decode(errors="replace")
        if _forked and status == 5 and "forked" in sentence:
            sentence += _FORKED
        kind = ERRORS[status] if 0 < status < len(ERRORS) else Error
        raise kind(sentence)            # type: ignore[misc]
