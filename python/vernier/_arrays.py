# SPDX-License-Identifier: Apache-2.0
"""Arrays as operands: NumPy's own memory where the device computes in it, else copies on the device.

A `Call` collects the operands of one operation.  Each operand is a NumPy array, whatever has __dlpack__ (on the host,
or on a device of CUDA or OpenCL) or __array_interface__, or a vernier.Tensor.
"""
from __future__ import annotations

import sys
from ctypes import c_void_p
from typing import Any, Sequence

import numpy as np

from ._device import Buffer, Handle, Queue, _defaults, default_queue
from ._library import (ACTIVATIONS, HOST_ALIGN, MATHS, RANK, TYPES, CInts, CTensor, Extents, InvalidError, check, lib)

__all__ = ["Tensor", "Call", "tensor", "empty"]

try:
    import ml_dtypes
    bfloat16: Any = np.dtype(ml_dtypes.bfloat16)
except ImportError:                     # then there are no arrays of bf16 either
    bfloat16 = None

_CODES: dict[Any, int] = {np.dtype(np.float32): 0, np.dtype(np.float16): 1, np.dtype(np.float64): 3}
if bfloat16 is not None:
    _CODES[bfloat16] = 2
_DTYPES = {code: dtype for dtype, code in _CODES.items()}
_NO_TENSOR = CTensor()


def code_of(dtype: Any, name: str) -> int:
    code = _CODES.get(dtype)
    if code is None:
        raise TypeError(f"{name} has dtype {dtype}; it needs float32, float16, float64 or ml_dtypes.bfloat16")
    return code


class Tensor:
    """A view of a device buffer: shape, dtype and strides (in elements).  Operations on it do not wait.

    >>> import numpy as np, vernier
    >>> t = vernier.tensor(np.arange(6, dtype="f4").reshape(2, 3))
    >>> t.T.shape, t.T.numpy()[2].tolist()
    ((3, 2), [2.0, 5.0])
    """

    own_queue: Queue | None = None      # whose work its elements are; None: that of whoever uses it
    is_read_only = False

    def __init__(self, buffer: Buffer, dtype: Any, shape: Sequence[int], strides: Sequence[int] | None = None,
                 start: int = 0) -> None:
        self.buffer, self.dtype, self.start = buffer, np.dtype(dtype), start
        self.shape = tuple(int(n) for n in shape)
        if strides is None:
            step, packed = 1, []
            for n in reversed(self.shape):
                packed.append(step)
                step *= max(n, 1)
            strides = packed[::-1]
        self.strides = tuple(int(n) for n in strides)
        if len(self.strides) != len(self.shape):
            raise InvalidError(f"strides has {len(self.strides)} values; it needs {len(self.shape)}, as shape")
        code_of(self.dtype, "dtype")

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def T(self) -> Tensor:
        """It with its dimensions in reverse order, without a copy."""
        return self.transpose(*range(self.ndim)[::-1])

    def transpose(self, *order: int) -> Tensor:
        """Dimension i of the result is dimension order[i] of it; without a copy."""
        return Tensor(self.buffer, self.dtype, [self.shape[i] for i in order], [self.strides[i] for i in order],
                      self.start)

    def numpy(self, queue: Queue | None = None) -> Any:
        """A NumPy array of its elements; waits for the queue's work."""
        size = 1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides))
        flat = np.empty(size if 0 not in self.shape else 0, self.dtype)
        queue = queue or self.own_queue or default_queue()
        check(lib.vn_read(queue.handle, flat.ctypes.data, self.buffer.handle, self.start * self.dtype.itemsize,
                          flat.nbytes))
        steps = [s * self.dtype.itemsize for s in self.strides]
        return np.ascontiguousarray(np.lib.stride_tricks.as_strided(flat, self.shape, steps, writeable=False))

    def __repr__(self) -> str:
        return f"<vernier.Tensor {self.dtype}{list(self.shape)} on {self.buffer.device.info.spec}>"

    __reduce__ = Handle.__reduce__
    _instead = "send the array, tensor.numpy()"


def empty(shape: Sequence[int], dtype: Any = np.float32, queue: Queue | None = None) -> Tensor:
    """A tensor on the device, of undefined elements."""
    dtype = np.dtype(dtype)
    nbytes = int(np.prod([int(n) for n in shape], dtype=object)) * dtype.itemsize
    return Tensor(Buffer((queue or default_queue()).device, nbytes), dtype, shape)


def tensor(array: Any, queue: Queue | None = None) -> Tensor:
    """A copy of an array on the device."""
    queue = queue or default_queue()
    array = as_array(array, "array")
    if isinstance(array, Tensor):
        raise TypeError("array is in a device's memory; it needs the host's")
    array = np.ascontiguousarray(array)
    out = empty(array.shape, array.dtype, queue)
    check(lib.vn_write(queue.handle, out.buffer.handle, 0, array.ctypes.data, array.nbytes))
    return out


def as_array(x: Any, name: str) -> Any:
    """A NumPy array on the same memory, where that is the host's, and a tensor where it is a device's."""
    if isinstance(x, np.ndarray):
        return x
    if _is_lent(x):
        from ._dlpack import lent_array
        return lent_array(x, name)
    if hasattr(x, "__array__") or hasattr(x, "__array_interface__"):
        return np.asarray(x)
    raise TypeError(f"{name} is a {type(x).__name__}; it needs a NumPy array, a vernier.Tensor, or what has "
                    "__dlpack__ or __array_interface__")


# What a shape, strides in bytes and a dtype are as a view: (type, rank, extents, strides, bytes spanned), or None
# where a view cannot say it (negative or odd strides).
_views: dict[Any, Any] = {}


def _view_of(a: Any, name: str) -> Any:
    key = a.shape, a.strides, a.dtype
    try:
        return _views[key]
    except KeyError:
        pass
    code = code_of(a.dtype, name)
    size = a.dtype.itemsize
    if a.ndim > RANK:
        raise InvalidError(f"{name} has {a.ndim} dimensions; it needs at most {RANK}")
    view = None
    if all(n <= 1 or (s >= 0 and s % size == 0) for n, s in zip(a.shape, a.strides)):
        steps = [0 if n <= 1 else s // size for n, s in zip(a.shape, a.strides)]
        span = 0 if 0 in a.shape else size * (1 + sum((n - 1) * s for n, s in zip(a.shape, steps)))
        view = code, a.ndim, Extents(*a.shape), Extents(*steps), span, size
    if len(_views) > 4096:
        _views.clear()
    _views[key] = view
    return view


def _slow_address(a: Any) -> int:
    return a.__array_interface__["data"][0]     # type: ignore[no-any-return]


_pointer_at = c_void_p.from_address


def _quick_address(a: Any) -> int:
    """The first member of NumPy's C struct of an array, PyArrayObject, behind what all objects begin with."""
    return _pointer_at(id(a) + _HEADER).value or 0


# A call asks for each operand's address; making __array_interface__ costs a tenth of a small product.
_HEADER = object.__basicsize__
_samples = [np.arange(4, dtype="f4")[i:] for i in range(3)]
_address = _quick_address if sys.implementation.name == "cpython" and all(
    _quick_address(a) == _slow_address(a) for a in _samples) else _slow_address


def _is_opencl(x: Any) -> bool:
    """Whether it is an array of pyopencl."""
    return type(x).__module__.startswith("pyopencl") and hasattr(x, "base_data")


def _is_lent(x: Any) -> bool:
    """Whether it is another library's array, by DLPack."""
    return hasattr(x, "__dlpack_device__") and not hasattr(x, "__array_interface__")


class Call:
    """One operation: its queue, its operands as structs, and what is to be done after it."""

    def __init__(self, queue: Queue | None, *operands: Any) -> None:
        self._taken: dict[int, Any] = {}        # tensors of other libraries' arrays, by their ids
        self._after: list[Any] = []
        self.on_device = self.is_lent = False
        self.cl_queue = None
        for x in operands:
            if type(x) is not np.ndarray and x is not None:
                queue = self._inspect(queue, operands)
                break
        self.queue = _defaults.last = queue or default_queue()

    def _inspect(self, queue: Queue | None, operands: Sequence[Any]) -> Queue | None:
        """Where operands are that may not be NumPy's; the queue on them, if none is given."""
        self._taken = {id(x): as_array(x, "out") for x in operands
                       if not isinstance(x, (np.ndarray, Tensor)) and _is_lent(x)}
        tensors = [t for t in (self._taken.get(id(x), x) for x in operands) if isinstance(t, Tensor)]
        self.on_device = bool(tensors)
        self.cl_queue = next((t.cl_queue for t in tensors if hasattr(t, "cl_queue")), None)
        if queue is None and self.cl_queue is not None:
            from ._opencl import queue_on
            queue = queue_on(self.cl_queue)
        own = next((t.own_queue for t in tensors if t.own_queue), None)
        self.is_lent = own is not None          # then what lent its memory may use it when the call returns
        return queue or own

    def input(self, x: Any, name: str, rank: int = 0) -> CTensor:
        """The operand, with leading dimensions of 1 up to `rank`."""
        if not isinstance(x, (np.ndarray, Tensor)) and _is_opencl(x):
            x = on_opencl(x)
        if isinstance(x, Tensor):
            return self._tensor(x, rank)
        a = x if isinstance(x, np.ndarray) else as_array(x, name)
        if isinstance(a, Tensor):
            self._taken[id(x)] = a
            return self._tensor(a, rank)
        if a.ndim < rank:
            a = a.reshape((1,) * (rank - a.ndim) + a.shape)
        if not self.on_device and self.queue.device.shares_host:
            return self._shared(a, name, True)
        return self._copied(a, name, True)

    def output(self, x: Any, name: str, is_read: bool) -> CTensor:
        """What is written; is_read: and read before that."""
        if not isinstance(x, (np.ndarray, Tensor)) and _is_opencl(x):
            x = on_opencl(x)
        if not isinstance(x, (np.ndarray, Tensor)) and _is_lent(x):
            x = self._taken[id(x)] if id(x) in self._taken else self._taken.setdefault(id(x), as_array(x, name))
        if isinstance(x, Tensor):
            if x.is_read_only:
                raise InvalidError(f"{name} is read-only; it needs an array that can be written to")
            return self._tensor(x, 0)
        if not isinstance(x, np.ndarray):
            raise TypeError(f"{name} is a {type(x).__name__}; it needs a NumPy array, a vernier.Tensor, or what has "
                            "__dlpack__")
        if not x.flags.writeable:
            raise InvalidError(f"{name} is read-only; it needs an array that can be written to")
        if not self.on_device and self.queue.device.shares_host:
            return self._shared(x, name, is_read, x)
        return self._copied(x, name, is_read, x)

    def integers(self, x: Any, name: str) -> CInts:
        """A row of int32 or int64, of the host."""
        if isinstance(x, Tensor):
            raise TypeError(f"{name} is a Tensor; it needs a NumPy array of int32 or int64")
        a = as_array(x, name)
        if isinstance(a, Tensor):
            raise TypeError(f"{name} is in a device's memory; it needs a NumPy array of int32 or int64")
        size = a.dtype.itemsize
        if a.dtype not in (np.int32, np.int64):
            raise TypeError(f"{name} has dtype {a.dtype}; it needs int32 or int64")
        if a.ndim != 1:
            raise InvalidError(f"{name} has {a.ndim} dimensions; it needs 1")
        if self.on_device or not self.queue.device.shares_host:
            packed = np.ascontiguousarray(a)
            buffer = self.queue._scratch_of(name, max(packed.nbytes, 1))
            check(lib.vn_write(self.queue.handle, buffer, 0, packed.ctypes.data, packed.nbytes))
            return CInts(buffer, 0, len(a), 1, size, 0)
        if len(a) > 1 and (a.strides[0] < size or a.strides[0] % size) or a.ctypes.data % size:
            a = a.copy()
            self._after.append((a, a, None))                # kept until the work is done
        stride = a.strides[0] // size if len(a) > 1 else 1
        lead = a.ctypes.data % HOST_ALIGN
        span = size * ((len(a) - 1) * stride + 1) if len(a) else size
        return CInts(self.queue._on_host(a.ctypes.data - lead, lead + span), lead // size, len(a), stride, size, 0)

    def finish(self) -> None:
        """Waits for what is in NumPy's memory, and copies what was not computed there."""
        if not self.on_device or self.is_lent:
            check(lib.vn_queue_finish(self.queue.handle))
        for target, copy, buffer in self._after:
            if buffer is not None:
                check(lib.vn_read(self.queue.handle, copy.ctypes.data, buffer, 0, copy.nbytes))
            if target is not copy:
                target[...] = copy
        self._after.clear()

    def _tensor(self, t: Tensor, rank: int) -> CTensor:
        more = max(rank - t.ndim, 0)
        return CTensor(t.buffer.handle, code_of(t.dtype, "dtype"), t.ndim + more, t.start,
                       Extents(*(1,) * more, *t.shape), Extents(*(0,) * more, *t.strides))

    def _shared(self, a: Any, name: str, is_read: bool, target: Any = None) -> CTensor:
        view = _view_of(a, name)
        address = _address(a)
        if view is None or address % view[5]:
            a = a.copy() if is_read else np.empty(a.shape, a.dtype)
            if target is not None:
                self._after.append((target, a, None))
            else:
                self._after.append((a, a, None))            # kept until the work is done
            view = _view_of(a, name)
            address = _address(a)
        code, rank, extents, strides, span, size = view
        if not span:
            return CTensor(None, code, rank, 0, extents, strides)
        lead = address % HOST_ALIGN
        buffer = self.queue._host_buffer(address - lead, lead + span)
        kept = buffer._views.get((id(view), lead))          # `view` is kept with it, so that its id is no other's
        if kept is None:
            if len(buffer._views) > 64:
                buffer._views.clear()
            kept = buffer._views[id(view), lead] = (
                CTensor(buffer._open, code, rank, lead // size, extents, strides), view)
        return kept[0]              # type: ignore[no-any-return]

    def _copied(self, a: Any, name: str, is_read: bool, target: Any = None) -> CTensor:
        """On the device: a copy in its scratch memory for this operand."""
        code_of(a.dtype, name)
        if a.ndim > RANK:
            raise InvalidError(f"{name} has {a.ndim} dimensions; it needs at most {RANK}")
        packed = np.ascontiguousarray(a) if target is None or is_read else np.empty(a.shape, a.dtype)
        buffer = self.queue._scratch_of(name, packed.nbytes)
        if is_read:
            check(lib.vn_write(self.queue.handle, buffer, 0, packed.ctypes.data, packed.nbytes))
        if target is not None:
            direct = target.flags.c_contiguous
            self._after.append((target, target if direct else np.empty(a.shape, a.dtype), buffer))
        return self._tensor(_Scratch(buffer, a.dtype, packed.shape), 0)


class LentTensor(Tensor):
    """A view of another library's device memory, or what was computed from such."""

    lent: Any = None

    @property
    def own_queue(self) -> Queue:       # type: ignore[override]
        from ._dlpack import queue_on
        return queue_on(self.buffer.device)


class _Scratch(Tensor):
    """A packed view of a queue's scratch buffer."""

    class _Handle:
        def __init__(self, handle: int) -> None:
            self.handle = handle

    def __init__(self, handle: int, dtype: Any, shape: Sequence[int]) -> None:
        super().__init__(self._Handle(handle), dtype, shape)    # type: ignore[arg-type]


def result(call: Call, like: Any, shape: Sequence[int], dtype: Any) -> Any:
    """An array or tensor for what is computed, as the operands are."""
    if call.cl_queue is not None:
        from ._opencl import empty_on
        return empty_on(call.cl_queue, shape, dtype)
    if not call.on_device:
        return np.empty(shape, dtype)
    it = empty(shape, dtype, call.queue)
    return LentTensor(it.buffer, it.dtype, it.shape) if call.is_lent else it


def dtype_of(x: Any, name: str) -> tuple[Any, Any]:
    """The operand as array or tensor, and its dtype."""
    if not isinstance(x, (np.ndarray, Tensor)):
        x = on_opencl(x) if _is_opencl(x) else as_array(x, name)
    return x, x.dtype


def on_opencl(x: Any) -> Tensor:
    """The tensor of an array of pyopencl."""
    from ._opencl import tensor_of
    return tensor_of(x)


def activation_code(act: str | None) -> int:
    return choice_code(act or "identity", ACTIVATIONS, "act")


def math_code(math: str | None) -> int:
    return choice_code(math or "default", MATHS, "math")


def choice_code(value: str, among: Sequence[str], name: str) -> int:
    try:
        return among.index(value)
    except ValueError:
        raise InvalidError(f"{name} is {value!r}; it needs one of {', '.join(among)}") from None


def variant_name(variant: str | None) -> bytes | None:
    return None if variant is None else variant.encode()


assert len(TYPES) == 4 and set(_DTYPES) <= set(range(len(TYPES)))
