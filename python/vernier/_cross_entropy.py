# SPDX-License-Identifier: Apache-2.0
"""cross_entropy(): the loss of rows of logits by integer targets, and its gradient."""
from __future__ import annotations

from ctypes import byref, sizeof
from typing import Any

import numpy as np

from ._arrays import Call, dtype_of, result, variant_name
from ._device import Queue
from ._library import CCrossEntropyOptions, CTensor, InvalidError, check, lib


def cross_entropy(x: Any, targets: Any, loss: Any = None, dx: Any = None, *, smoothing: float = 0.0,
                  z_loss: float = 0.0, ignore: int = -100, weights: Any = None, lse: Any = None,
                  variant: str | None = None, queue: Queue | None = None) -> Any:
    """loss[r] := weights[r] (lse[r] - x[r, targets[r]]), lse being the logarithm of the sum of exponentials

    x         (rows, classes); dtypes as of gemm()
    targets   (rows,) of int32 or int64, a NumPy array: each row's class
    loss      (rows,) of float32 (of float64 beside that), made if None
    dx        the gradient, of the shape and dtype of x: an array, which may be x itself; True: made; None: none
    smoothing of labels, 0 to 1: the share of all classes alike
    z_loss    z_loss lse^2 is added to the loss
    ignore    rows with this target have loss and gradient 0
    weights   (rows,) of the dtype of loss: what each row's loss and gradient are multiplied by
    lse       an array as loss is, into which lse is written
    variant, queue, and what is raised: as of gemm()

    Returns the loss, or (loss, dx) where there is a dx.

    >>> import numpy as np, vernier
    >>> loss, dx = vernier.cross_entropy(np.zeros((1, 2), np.float32), np.array([1]), dx=True)
    >>> loss.round(4).tolist(), dx.tolist()
    ([0.6930999755859375], [[0.5, -0.5]])
    """
    x, dtype = dtype_of(x, "x")
    if x.ndim != 2:
        raise InvalidError(f"x has {x.ndim} dimensions; it needs 2: rows, classes")
    if ignore == 0:
        raise InvalidError("ignore is 0, which is a class; it needs another number")
    call = Call(queue, x, loss, None if dx is True else dx)
    wide = np.dtype(np.float64 if dtype == np.float64 else np.float32)
    if loss is None:
        loss = result(call, x, x.shape[:1], wide)
    if dx is True:
        dx = result(call, x, x.shape, dtype)
    options = CCrossEntropyOptions(size=sizeof(CCrossEntropyOptions), smoothing=smoothing, z_loss=z_loss, ignore=ignore,
                                   variant=variant_name(variant))
    if weights is not None:
        options.weights = call.input(weights, "weights")
    if lse is not None:
        options.lse = call.output(lse, "lse", False)
    c_dx = CTensor() if dx is None else call.output(dx, "dx", dx is x)
    check(lib.vn_cross_entropy(call.queue.handle, c_dx if dx is x else call.input(x, "x"),
                               call.integers(targets, "targets"), call.output(loss, "loss", False), c_dx,
                               byref(options)))
    call.finish()
    return loss if dx is None else (loss, dx)
