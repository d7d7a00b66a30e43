# SPDX-License-Identifier: Apache-2.0
"""softmax() and its gradient."""
from __future__ import annotations

from ctypes import byref
from typing import Any

from ._arrays import Call, dtype_of, result, variant_name
from ._device import Queue
from ._library import CSoftmaxOptions, InvalidError, check, lib


def _axis(axis: int, ndim: int) -> int:
    """Counted from the last, as the library does."""
    if not -ndim <= axis < ndim:
        raise InvalidError(f"axis is {axis}; it needs one of the {ndim} of x")
    return -axis - 1 if axis < 0 else ndim - 1 - axis


def softmax(x: Any, out: Any = None, *, axis: int = -1, log: bool = False, scale: float = 1.0, mask: Any = None,
            causal: bool = False, variant: str | None = None, queue: Queue | None = None) -> Any:
    """out := exp(z - max z) / sum exp(z - max z) along the axis, z = scale x + mask, or the logarithm of that

    x         of any shape up to 6 dimensions; dtypes as of gemm()
    out       of the shape and dtype of x, which it may be itself; made if None
    mask      added to scaled x; broadcasts to its shape
    causal    element j of the axis is masked where j > i, i counting along the dimension before the last
    variant, queue, and what is raised: as of gemm()

    >>> import numpy as np, vernier
    >>> vernier.softmax(np.zeros((2, 4), np.float32), causal=True).tolist()
    [[1.0, 0.0, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0]]
    """
    x, dtype = dtype_of(x, "x")
    call = Call(queue, x, out)
    options = CSoftmaxOptions(axis=_axis(axis, x.ndim), log=log, scale=scale, causal=causal,
                              variant=variant_name(variant))
    if scale == 0:
        raise InvalidError("scale is 0; it needs another factor")
    if out is None:
        out = result(call, x, x.shape, dtype)
    if mask is not None:
        options.mask = call.input(mask, "mask", x.ndim)
    c_out = call.output(out, "out", out is x)
    check(lib.vn_softmax(call.queue.handle, c_out if out is x else call.input(x, "x"), c_out, byref(options)))
    call.finish()
    return out


def softmax_backward(y: Any, dy: Any, out: Any = None, *, axis: int = -1, log: bool = False, scale: float = 1.0,
                     causal: bool = False, variant: str | None = None, queue: Queue | None = None) -> Any:
    """out := scale y (dy - sum dy y), or, of the log-softmax, scale (dy - exp(y) sum dy)

    y         what softmax() gave, with the same axis, log, scale and causal
    dy        of its shape and dtype; out as well, made if None, and it may be dy itself

    >>> import numpy as np, vernier
    >>> y = vernier.softmax(np.zeros((1, 2), np.float32))
    >>> vernier.softmax_backward(y, np.array([[1, 0]], np.float32)).tolist()
    [[0.25, -0.25]]
    """
    y, dtype = dtype_of(y, "y")
    dy, _ = dtype_of(dy, "dy")
    call = Call(queue, y, dy, out)
    options = CSoftmaxOptions(axis=_axis(axis, y.ndim), log=log, scale=scale, causal=causal,
                              variant=variant_name(variant))
    if out is None:
        out = result(call, y, y.shape, dtype)
    c_out = call.output(out, "out", out is dy)
    check(lib.vn_softmax_backward(call.queue.handle, call.input(y, "y"), c_out if out is dy else call.input(dy, "dy"),
                                  c_out, byref(options)))
    call.finish()
    return out
