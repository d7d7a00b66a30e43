# SPDX-License-Identifier: Apache-2.0
"""Arrays of other libraries by DLPack: on the host, and in the memory of CUDA and OpenCL devices, without a copy.

The structs are those of DLPack's dlpack.h, in the form before version 1 and from it on.  What is on a device is
computed on in its own context: of CUDA the primary one, of OpenCL the one that the cl_mem is of.
"""
from __future__ import annotations

import ctypes
import threading
import weakref
from ctypes import byref, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any

import numpy as np

from ._device import Buffer, Device, Queue
from ._library import STATUS, InvalidError, NoDeviceError, check, lib
from ._opencl import device_in

HOST, CUDA, CUDA_HOST, OPENCL = 1, 2, 3, 4
DEFAULT_STREAM = 1              # of __dlpack__(stream=...): CUDA's legacy default stream, which our queue is
READ_ONLY = 1                   # of flags


class _DLDevice(ctypes.Structure):
    _fields_ = [("type", c_int32), ("id", c_int32)]


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device", _DLDevice), ("ndim", c_int32), ("code", c_uint8), ("bits", c_uint8),
                ("lanes", c_uint16), ("shape", ctypes.POINTER(c_int64)), ("strides", ctypes.POINTER(c_int64)),
                ("byte_offset", c_uint64)]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _DLTensor), ("context", c_void_p), ("deleter", c_void_p)]


class _ManagedVersioned(ctypes.Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("context", c_void_p), ("deleter", c_void_p),
                ("flags", c_uint64), ("tensor", _DLTensor)]


_FORMS = ((b"dltensor_versioned", b"used_dltensor_versioned", _ManagedVersioned),
          (b"dltensor", b"used_dltensor", _Managed))
_KINDS = {0: "i", 1: "u", 2: "f", 5: "c"}
_is_valid = ctypes.PYFUNCTYPE(c_int, ctypes.py_object, c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_rename = ctypes.PYFUNCTYPE(c_int, ctypes.py_object, c_char_p)(("PyCapsule_SetName", ctypes.pythonapi))
_DELETER = ctypes.PYFUNCTYPE(None, c_void_p)


def _release(managed: int, deleter: int | None) -> None:
    if deleter:
        _DELETER(deleter)(managed)


class _Lent:
    """What another library lends: its memory stays as long as this does."""

    def __init__(self, x: Any, name: str, stream: int | None) -> None:
        options: dict[str, Any] = {} if stream is None else {"stream": stream}
        try:
            capsule = x.__dlpack__(max_version=(1, 0), **options)
        except TypeError:               # it is older than that argument
            capsule = x.__dlpack__(**options)
        form = next((f for f in _FORMS if _is_valid(capsule, f[0])), None)
        if form is None:
            raise TypeError(f"{name}.__dlpack__() gives {capsule!r}; it needs a capsule \"dltensor\" not used before")
        address = _pointer(capsule, form[0])
        managed = form[2].from_address(address)
        if form[2] is _ManagedVersioned and managed.major != 1:
            raise TypeError(f"{name} is of DLPack {managed.major}.{managed.minor}; it needs version 1 or before")
        _rename(capsule, form[1])
        weakref.finalize(self, _release, address, managed.deleter)
        t = managed.tensor
        self.is_read_only = bool(getattr(managed, "flags", 0) & READ_ONLY)
        self.kind, self.device, self.data, self.offset = t.device.type, t.device.id, t.data or 0, t.byte_offset
        self.shape = tuple(t.shape[:t.ndim])
        self.dtype = _dtype_of(t, name)
        if t.strides:
            self.strides = tuple(t.strides[:t.ndim])
        else:
            self.strides = tuple(int(np.prod(self.shape[i + 1:], dtype=np.int64)) for i in range(t.ndim))

    @property
    def span(self) -> int:
        """The bytes from its first element to its last, if no stride is negative."""
        if 0 in self.shape:
            return 0
        return int(self.dtype.itemsize * (1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides))))


def _dtype_of(t: Any, name: str) -> Any:
    if t.lanes == 1 and t.bits % 8 == 0:
        if t.code == 4 and t.bits == 16:
            from ._arrays import bfloat16
            if bfloat16 is None:
                raise TypeError(f"{name} has dtype bfloat16; install ml_dtypes, which gives NumPy that")
            return bfloat16
        if t.code in _KINDS:
            return np.dtype(f"{_KINDS[t.code]}{t.bits // 8}")
        if t.code == 6:
            return np.dtype(bool)
    raise TypeError(f"{name} has DLPack's type {t.code} of {t.bits} bits and {t.lanes} lanes; it needs float32, "
                    "float16, bfloat16 or float64")


class _Memory:
    """Memory of the host that is lent, for numpy.asarray()."""

    def __init__(self, lent: _Lent) -> None:
        self.lent = lent
        self.__array_interface__ = {
            "version": 3, "data": (lent.data + lent.offset, lent.is_read_only), "shape": lent.shape,
            "typestr": f"<i{lent.dtype.itemsize}" if lent.dtype.kind == "V" else lent.dtype.str,
            "strides": tuple(s * lent.dtype.itemsize for s in lent.strides)}


def lent_array(x: Any, name: str) -> Any:
    """A NumPy array on an object's memory, or a tensor where that is a device's."""
    from ._arrays import LentTensor, code_of
    kind, index = (int(n) for n in x.__dlpack_device__())
    if kind not in (HOST, CUDA, CUDA_HOST, OPENCL):
        raise TypeError(f"{name} is in memory of DLPack's device type {kind}; it needs the host's (1, or 3, which is "
                        "pinned), CUDA's (2) or OpenCL's (4)")
    if kind in (HOST, CUDA_HOST):
        lent = _Lent(x, name, None)
        a = np.asarray(_Memory(lent))
        return a.view(lent.dtype) if a.dtype != lent.dtype else a
    device = _cuda_device(index, name) if kind == CUDA else None
    lent = _Lent(x, name, DEFAULT_STREAM if kind == CUDA else None)
    if any(s < 0 for n, s in zip(lent.shape, lent.strides) if n > 1):
        raise InvalidError(f"{name} has strides {lent.strides}; they need to be 0 or more")
    code_of(lent.dtype, name)
    size = lent.dtype.itemsize
    out = c_void_p()
    buffer = Buffer.__new__(Buffer)
    if device is not None:
        address, start = lent.data + lent.offset, 0
        check(lib.vn_cuda_buffer_open(byref(out), device.handle, address, max(lent.span, 1)))
        nbytes = lent.span
    else:
        device = _opencl_device(lent.data, index, name)
        if lent.offset % size:
            raise InvalidError(f"{name} begins at byte {lent.offset} of its cl_mem; it needs a multiple of {size}")
        start = lent.offset // size
        nbytes = lent.offset + lent.span
        check(lib.vn_opencl_buffer_open(byref(out), device.handle, lent.data))
    buffer._adopt(device, nbytes, out)
    it = LentTensor(buffer, lent.dtype, lent.shape, [s if n > 1 else 0 for n, s in zip(lent.shape, lent.strides)], start)
    it.lent, it.is_read_only = lent, lent.is_read_only
    return it


# ---- devices and queues ------------------------------------------------------------------------------

_devices: dict[int, Device] = {}        # of CUDA, by its number
_lock = threading.Lock()
_queues = threading.local()


def _cuda_driver() -> Any:
    return ctypes.CDLL("libcuda.so.1")


def _cuda_device(index: int, name: str) -> Device:
    """On the primary context, which is the one that libraries with the CUDA runtime use."""
    if index in _devices:
        return _devices[index]
    device, context = c_int(), c_void_p()
    try:
        driver = _cuda_driver()
    except OSError as why:
        raise NoDeviceError(f"{name} is in memory of CUDA device {index}, and its driver cannot be loaded: {why}") from None
    error = driver.cuInit(0) or driver.cuDeviceGet(byref(device), index) or \
        driver.cuDevicePrimaryCtxRetain(byref(context), device)
    if error:
        raise NoDeviceError(f"{name} is in memory of CUDA device {index}, whose primary context the driver refuses "
                            f"with error {error}")
    with _lock:
        if index not in _devices:
            out = c_void_p()
            check(lib.vn_cuda_device_open(byref(out), context))
            it = Device.__new__(Device)
            it._adopt(out)
            _devices[index] = it
    return _devices[index]


def _opencl_device(memory: int, index: int, name: str) -> Device:
    """On the context of a cl_mem; `index` is that of the device in it, where it has several."""
    CONTEXT, CONTEXT_DEVICES = 0x1106, 0x1081
    context, room = c_void_p(), c_size_t()
    error = lib.clGetMemObjectInfo(memory, CONTEXT, ctypes.sizeof(context), byref(context), None) or \
        lib.clGetContextInfo(context, CONTEXT_DEVICES, 0, None, byref(room))
    ids = (c_void_p * max(room.value // ctypes.sizeof(c_void_p), 1))()
    error = error or lib.clGetContextInfo(context, CONTEXT_DEVICES, ctypes.sizeof(ids), ids, None)
    if error or not ids[0]:
        raise InvalidError(f"{name} is said to be a cl_mem, which OpenCL refuses with error {error}")
    chosen = ids[index] if 0 <= index < len(ids) else ids[0]
    return device_in(context.value or 0, chosen or 0)


def queue_on(device: Device) -> Queue:
    """This thread's queue on it; of CUDA the default stream, after which other streams' work waits."""
    opened: dict[int, Queue] = _queues.__dict__.setdefault("of", {})
    it = opened.get(device.handle)
    if it is None:
        if device.info.spec.startswith("cuda"):
            out = c_void_p()
            check(lib.vn_cuda_queue_open(byref(out), device.handle, None))
            it = Queue.__new__(Queue)
            it._adopt(device, out)
        else:
            it = Queue(device)
        opened[device.handle] = it
    return it


# The loader's own functions: the C library is linked with them.
for _function in (lib.clGetMemObjectInfo, lib.clGetContextInfo):
    _function.restype = STATUS
    _function.argtypes = [c_void_p, c_uint32, c_size_t, c_void_p, c_void_p]
