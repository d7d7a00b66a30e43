# SPDX-License-Identifier: Apache-2.0
"""Arrays of pyopencl as operands: in their own memory, context and queue, without a copy."""
from __future__ import annotations

import threading
from ctypes import byref, c_void_p
from typing import Any

from ._arrays import Tensor
from ._device import Buffer, Device, Queue
from ._library import InvalidError, check, lib

_devices: dict[tuple[int, int], Device] = {}
_lock = threading.Lock()
_queues = threading.local()


def device_in(context: int, device: int) -> Device:
    """The vernier.Device on a cl_device_id in a cl_context; as that is retained, no other has its address."""
    key = context, device
    with _lock:
        it = _devices.get(key)
        if it is None:
            out = c_void_p()
            check(lib.vn_opencl_device_open(byref(out), *key))
            it = _devices[key] = Device.__new__(Device)
            it._adopt(out)
    return it


def _device(queue: Any) -> Device:
    return device_in(queue.context.int_ptr, queue.device.int_ptr)


def queue_on(queue: Any) -> Queue:
    """This thread's vernier.Queue on a command queue."""
    key = queue.int_ptr
    opened: dict[int, Queue] = _queues.__dict__.setdefault("of", {})
    it = opened.get(key)
    if it is None:
        out = c_void_p()
        device = _device(queue)
        check(lib.vn_opencl_queue_open(byref(out), device.handle, key))
        it = opened[key] = Queue.__new__(Queue)
        it._adopt(device, out)
    return it


class ClTensor(Tensor):
    """A view of a pyopencl array."""

    def __init__(self, x: Any) -> None:
        if x.queue is None:
            raise InvalidError("an array of pyopencl has no queue; it needs one, array.with_queue(queue)")
        size = x.dtype.itemsize
        if x.offset % size or any(s % size for s in x.strides):
            raise InvalidError(f"an array of pyopencl has offset {x.offset} and strides {x.strides}; they need to be "
                               f"multiples of its elements' {size} bytes")
        buffer = Buffer.__new__(Buffer)
        out = c_void_p()
        device = _device(x.queue)
        check(lib.vn_opencl_buffer_open(byref(out), device.handle, x.base_data.int_ptr))
        buffer._adopt(device, x.base_data.size, out)
        super().__init__(buffer, x.dtype, x.shape, [s // size for s in x.strides], x.offset // size)
        self.cl_queue = x.queue     # where results are made; not the array itself, which keeps this


def tensor_of(x: Any) -> ClTensor:
    """The tensor of an array, kept with it until its memory is another."""
    key = x.base_data.int_ptr if x.base_data is not None else 0, x.offset, x.shape, x.strides, x.dtype
    kept = x.__dict__.get("_vernier")
    if kept is not None and kept[0] == key:
        return kept[1]              # type: ignore[no-any-return]
    if not key[0]:
        raise InvalidError("an array of pyopencl has no elements; it needs some")
    it = ClTensor(x)
    x.__dict__["_vernier"] = key, it
    return it


def empty_on(queue: Any, shape: Any, dtype: Any) -> Any:
    """A pyopencl array of undefined elements."""
    import pyopencl.array
    return pyopencl.array.empty(queue, tuple(int(n) for n in shape), dtype)
