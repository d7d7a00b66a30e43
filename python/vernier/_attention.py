# SPDX-License-Identifier: Apache-2.0
"""attention(), softmax(Q K^T) V by heads without the scores in memory, and its gradients."""
from __future__ import annotations

from ctypes import byref, sizeof
from typing import Any

import numpy as np

from ._arrays import Call, choice_code, dtype_of, math_code, result, variant_name
from ._device import Queue
from ._library import CAUSALS, CAttentionOptions, CTensor, InvalidError, check, lib


def attention(queries: Any, keys: Any, values: Any, out: Any = None, *, scale: float = 0.0, causal: str | None = None,
              window: int = 0, softcap: float = 0.0, mask: Any = None, lse: Any = None, sinks: Any = None,
              key_lengths: Any = None, query_lengths: Any = None, pages: Any = None, math: str | None = None,
              variant: str | None = None, queue: Queue | None = None) -> Any:
    """out := softmax(scores) values, by heads; scores = scale queries keys^T, capped, plus the mask

    queries   (B, H, Sq, D); dtypes as of gemm().  Arrays stored as (B, S, H, D) are x.transpose(0, 2, 1, 3)
    keys      (B, Hk, Sk, D); H is a multiple of Hk: head h reads head h Hk / H of keys and values
    values    (B, Hk, Sk, Dv); D and Dv are 1 to 256
    out       (B, H, Sq, Dv), made if None
    scale     0: 1 / sqrt(D)
    causal    "last": the last query stands at the last key, as with a cache of keys; "first": the first at the
              first; a query sees the key at its place and those before, with `window` the last so many of these
    softcap   scores s become softcap tanh(s / softcap) before the mask; 0: they do not
    mask      added to the scores; broadcasts to (B, H, Sq, Sk)
    lse       an array (B, H, Sq) of float32 (of float64 beside that), into which the logarithm of the sum of
              the exponentials of each row's scores is written
    sinks     (H,) of the dtype of lse: logits, whose exponentials are added to the sums of their heads' rows
    key_lengths, query_lengths
              (B,) integers: how many keys and queries a batch has, the first ones; rows of out behind are 0
    pages     (B, n) integers: keys are (P, Hk, page, D) and values (P, Hk, page, Dv), P pages of a cache, and
              a batch's keys lie in the n pages that these name, in order
    math, variant, queue, and what is raised: as of gemm()

    >>> import numpy as np, vernier
    >>> x = np.zeros((1, 1, 2, 4), np.float32)
    >>> v = np.array([[[[2], [4]]]], np.float32)
    >>> vernier.attention(x, x, v, causal="last").ravel().tolist()
    [2.0, 3.0]
    """
    queries, dtype = dtype_of(queries, "queries")
    keys, _ = dtype_of(keys, "keys")
    values, _ = dtype_of(values, "values")
    for name, it in (("queries", queries), ("keys", keys), ("values", values)):
        if it.ndim != 4:
            raise InvalidError(f"{name} has {it.ndim} dimensions; it needs 4: batch, heads, places, elements")
    call = Call(queue, queries, keys, values, out)
    if out is None:
        out = result(call, queries, (*queries.shape[:3], values.shape[3]), dtype)
    options = _options(scale, causal, window, softcap, math, variant)
    if mask is not None:
        options.mask = call.input(mask, "mask", 4)
    if lse is not None:
        options.lse = call.output(lse, "lse", False)
    if sinks is not None:
        options.sinks = call.input(sinks, "sinks")
    integers = []                           # kept until the call is finished
    for name, it in (("key_lengths", key_lengths), ("query_lengths", query_lengths), ("pages", pages)):
        if it is not None:
            integers.append(_int32(it, name, 2 if name == "pages" else 1))
            setattr(options, name, call.integers(integers[-1], name))
    check(lib.vn_attention(call.queue.handle, call.input(queries, "queries"), call.input(keys, "keys"),
                           call.input(values, "values"), call.output(out, "out", False), byref(options)))
    call.finish()
    return out


def attention_backward(queries: Any, keys: Any, values: Any, out: Any, d_out: Any, lse: Any, d_queries: Any = True,
                       d_keys: Any = True, d_values: Any = True, *, scale: float = 0.0, causal: str | None = None,
                       window: int = 0, softcap: float = 0.0, mask: Any = None, math: str | None = None,
                       variant: str | None = None, queue: Queue | None = None) -> Any:
    """The gradients of attention() by queries, keys and values, of the gradient d_out of its result

    queries, keys, values, out, lse, and scale to mask
              as attention() had them, and left them
    d_out     of the shape of out
    d_queries, d_keys, d_values
              of the shapes of queries, keys and values: arrays; True: made; None: not computed
    math, variant, queue, and what is raised: as of gemm()

    Returns (d_queries, d_keys, d_values).

    >>> import numpy as np, vernier
    >>> x, lse = np.zeros((1, 1, 2, 4), np.float32), np.empty((1, 1, 2), np.float32)
    >>> out = vernier.attention(x, x, x, lse=lse)
    >>> vernier.attention_backward(x, x, x, out, x + 1, lse)[2][0, 0].tolist()
    [[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]]
    """
    inputs = {name: dtype_of(it, name)[0] for name, it in (("queries", queries), ("keys", keys), ("values", values),
                                                           ("out", out), ("d_out", d_out))}
    for name, it in inputs.items():
        if it.ndim != 4:
            raise InvalidError(f"{name} has {it.ndim} dimensions; it needs 4: batch, heads, places, elements")
    gradients = {"d_queries": d_queries, "d_keys": d_keys, "d_values": d_values}
    call = Call(queue, *inputs.values(), *(it for it in gradients.values() if it is not True))
    for name, it in gradients.items():
        if it is True:
            like = inputs[name[2:]]
            gradients[name] = result(call, like, like.shape, like.dtype)
    options = _options(scale, causal, window, softcap, math, variant)
    if mask is not None:
        options.mask = call.input(mask, "mask", 4)
    options.lse = call.input(lse, "lse")
    check(lib.vn_attention_backward(
        call.queue.handle, *(call.input(it, name) for name, it in inputs.items()),
        *(CTensor() if it is None else call.output(it, name, False) for name, it in gradients.items()), byref(options)))
    call.finish()
    return tuple(gradients.values())


def _options(scale: float, causal: str | None, window: int, softcap: float, math: str | None,
             variant: str | None) -> CAttentionOptions:
    return CAttentionOptions(size=sizeof(CAttentionOptions), scale=scale, window=window, softcap=softcap,
                             causal=choice_code(causal or "none", CAUSALS, "causal"), math=math_code(math),
                             variant=variant_name(variant))


def _int32(x: Any, name: str, ndim: int) -> Any:
    """Integers in a row, of 4 bytes."""
    a = np.asarray(x)
    if a.dtype.kind not in "iu":
        raise TypeError(f"{name} has dtype {a.dtype}; it needs integers")
    if a.ndim != ndim:
        raise InvalidError(f"{name} has {a.ndim} dimensions; it needs {ndim}")
    if a.size and not -2 ** 31 <= int(a.min()) <= int(a.max()) < 2 ** 31:
        raise InvalidError(f"{name} has values from {a.min()} to {a.max()}; they need 32 bits")
    return np.ascontiguousarray(a, np.int32).reshape(-1)
