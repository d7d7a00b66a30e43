# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

import vernier

from .arrays import DTYPES, EPS, double, near, reals


def reference(x, axis, log=False, scale=1.0, mask=0.0, causal=False):
    z = scale * double(x) + double(mask)
    if causal:
        i, j = np.indices(x.shape[-2:])
        z = np.where(j > i, -np.inf, z)
    z = z - z.max(axis=axis, keepdims=True)
    y = z - np.log(np.exp(z).sum(axis=axis, keepdims=True))
    return y if log else np.exp(y)


def bound(wanted, n, name, log):
    """Exponential, sum and quotient in f32, then one rounding; the logarithm is off by as much, absolutely."""
    inner = (n + 40) * EPS["float64" if name == "float64" else "float32"]
    tiny = 2.0 ** -25 if name == "float16" else 2.0 ** -126
    wanted = np.where(np.isfinite(wanted), wanted, 0)
    return EPS[name] * abs(wanted) + inner * (np.maximum(abs(wanted), 1) if log else wanted) + tiny


# Each type is a kernel or two.
@pytest.mark.parametrize("name", [n for n in DTYPES if n in ("float32", "bfloat16")])
@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("shape,axis", [((7, 33), -1), ((7, 33), 0), ((1, 1), -1), ((5,), 0), ((2, 3, 40), -1),
                                        ((2, 40, 3), 1), ((2, 3, 4, 5), 1), ((3, 257), -1)])
def test_softmax(random, shape, axis, log, name):
    x = reals(random, shape, name) * np.float32(4).astype(reals(random, 1, name).dtype)
    wanted = reference(x, axis, log)
    near(vernier.softmax(x, axis=axis, log=log), wanted, bound(wanted, shape[axis], name, log))


@pytest.mark.parametrize("mask", [(6, 9), (1, 9), (9,), (6, 1)])
@pytest.mark.parametrize("scale", [1.0, 0.125])
def test_mask(random, mask, scale):
    x, m = reals(random, (6, 9)), reals(random, mask)
    wanted = reference(x, -1, scale=scale, mask=m)
    near(vernier.softmax(x, mask=m, scale=scale), wanted, bound(wanted, 9, "float32", False))


@pytest.mark.parametrize("shape", [(8, 8), (3, 5, 9), (2, 9, 4)])
def test_causal(random, shape):
    x = reals(random, shape)
    wanted = reference(x, -1, causal=True)
    near(vernier.softmax(x, causal=True), wanted, bound(wanted, shape[-1], "float32", False))


@pytest.mark.parametrize("view", ["whole", "columns", "transposed", "reverse", "copies"])
def test_in_place(random, monkeypatch, view):
    if view == "copies":
        monkeypatch.setattr(vernier.default_queue().device, "_shares_host", False)
    whole = reals(random, (16, 16))
    x = {"columns": whole[:, 3:12], "transposed": whole.T, "reverse": whole[::-1]}.get(view, whole)
    wanted = reference(x, -1)
    assert vernier.softmax(x, x) is x
    near(x, wanted, bound(wanted, 16, "float32", False))


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("axis", [-1, 0])
@pytest.mark.parametrize("in_place", [False, True])
def test_backward(random, log, axis, in_place):
    x, dy = reals(random, (6, 9)), reals(random, (6, 9))
    y = vernier.softmax(x, axis=axis, log=log)
    d, v = double(dy), double(y)
    wanted = 2 * (d - np.exp(v) * d.sum(axis=axis, keepdims=True) if log
                  else v * (d - (v * d).sum(axis=axis, keepdims=True)))
    got = vernier.softmax_backward(y, dy, dy if in_place else None, axis=axis, log=log, scale=2)
    near(got, wanted, 40 * EPS["float32"] * (2 + 2 * abs(d).sum(axis=axis, keepdims=True)))


def test_tensors(random):
    x = reals(random, (4, 6))
    y = vernier.softmax(vernier.tensor(x))
    near(y.numpy(), reference(x, -1), bound(reference(x, -1), 6, "float32", False))


@pytest.mark.parametrize("words,call", [
    ("axis is 2", lambda x: vernier.softmax(x, axis=2)),
    ("axis is -3", lambda x: vernier.softmax(x, axis=-3)),
    ("scale is 0", lambda x: vernier.softmax(x, scale=0)),
    ("vn_softmax: ", lambda x: vernier.softmax(x, mask=np.zeros((3, 1), "f4"))),
    ("vn_softmax: ", lambda x: vernier.softmax(x, np.zeros((3, 1), "f4"))),
    ("vn_softmax: ", lambda x: vernier.softmax(x, axis=0, causal=True)),
    ("vn_softmax_backward: ", lambda x: vernier.softmax_backward(x, x[:1])),
])
def test_wrong(words, call):
    with pytest.raises(vernier.InvalidError, match=words):
        call(np.zeros((2, 4), "f4"))
