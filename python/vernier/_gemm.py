# SPDX-License-Identifier: Apache-2.0
"""gemm(): matrix products."""
from __future__ import annotations

from ctypes import byref, sizeof
from typing import Any

from ._arrays import (Call, activation_code, dtype_of, math_code, result, variant_name)
from ._device import Queue
from ._library import CGemmOptions, InvalidError, check, lib


def gemm(a: Any, b: Any, out: Any = None, *, alpha: float = 1.0, beta: float = 0.0, bias: Any = None,
         act: str | None = None, residual: Any = None, scale: Any = None, dtype: Any = None, math: str | None = None,
         variant: str | None = None, queue: Queue | None = None) -> Any:
    """out := act(alpha scale (a @ b) + beta residual + bias)

    a         (..., M, K) of float32, float16, ml_dtypes.bfloat16, or float64 where the device has it
    b         (..., K, N) of the same dtype; batch dimensions of 1 broadcast, also those that are not there
    out       (..., M, N), made if None; of the dtype of a, or float32 where that has 16 bits.
              It is returned, and must share no memory with another operand
    bias      N elements, or what broadcasts to the shape of out
    act       None, "relu", "gelu", "silu", "sigmoid" or "tanh"
    residual  what beta multiplies, in place of out; broadcasts as the bias does
    scale     multiplies a @ b element by element; broadcasts as the bias does; float32, or float64
    dtype     of out, where that is made
    math      "default"; "tf32": float32 may be rounded to 10 bits; "bitwise": the same bits on every device
    variant   run this one or fail, as vernier.explain() names it
    queue     of the device to use; None: this thread's default_queue()

    Arrays of any strides are taken without a copy where the device computes in the host's memory (CPUs), save
    negative ones.  With a vernier.Tensor among the operands, out is one, and the call does not wait.
    vernier.Error is raised with the library's sentence; out has not changed then.

    >>> import numpy as np, vernier
    >>> a = np.array([[1, 2], [3, 4]], np.float32)
    >>> vernier.gemm(a, a.T, bias=np.array([0, -20], np.float32), act="relu").tolist()
    [[5.0, 0.0], [11.0, 5.0]]
    """
    a, a_dtype = dtype_of(a, "a")
    b, _ = dtype_of(b, "b")
    if a.ndim < 2 or b.ndim < 2:
        raise InvalidError(f"a has {a.ndim} dimensions and b has {b.ndim}; they need 2 or more")
    rank = max(a.ndim, b.ndim)
    call = Call(queue, a, b, out)
    if out is None:
        if beta and residual is None:
            raise InvalidError(f"beta is {beta}, and out and residual are None; it needs what beta multiplies")
        batches = _broadcast(a.shape[:-2], b.shape[:-2])
        out = result(call, a, (*batches, a.shape[-2], b.shape[-1]), dtype or a_dtype)
    options, pointer = None, None
    if bias is not None or act or residual is not None or scale is not None or math or variant:
        options = CGemmOptions(math=math_code(math), activation=activation_code(act), size=sizeof(CGemmOptions),
                               variant=variant_name(variant))
        for name, it in (("bias", bias), ("residual", residual), ("scale", scale)):
            if it is not None:
                setattr(options, name, call.input(it, name, rank))
        pointer = byref(options)
    check(lib.vn_gemm(call.queue.handle, alpha, call.input(a, "a", rank), call.input(b, "b", rank), beta,
                      call.output(out, "out", beta != 0 and residual is None), pointer))
    call.finish()
    return out


def _broadcast(a: Any, b: Any) -> Any:
    """The batch dimensions of a product."""
    if a == b:
        return a
    more = len(a) - len(b)
    a, b = (1,) * -more + tuple(a), (1,) * more + tuple(b)
    for m, n in zip(a, b):
        if m != n and m != 1 and n != 1:
            raise InvalidError(f"a has batches {list(a)} and b has {list(b)}; they need the same, or 1")
    return tuple(n if m == 1 else m for m, n in zip(a, b))
