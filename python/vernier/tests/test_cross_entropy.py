# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

import vernier

from .arrays import EPS, double, near, reals


def reference(x, targets, smoothing=0.0, z_loss=0.0, weights=1.0, ignore=-100):
    """loss, gradient and lse."""
    x, rows = double(x), np.arange(len(targets))
    known = targets != ignore
    at = np.where(known, targets, 0)
    lse = np.log(np.exp(x).sum(axis=1))
    loss = lse - (1 - smoothing) * x[rows, at] - smoothing * x.mean(axis=1) + z_loss * lse ** 2
    dx = (1 + 2 * z_loss * lse)[:, None] * np.exp(x - lse[:, None]) - smoothing / x.shape[1]
    dx[rows, at] -= 1 - smoothing
    scale = known * weights
    return scale * loss, scale[:, None] * dx, lse


# Logits are -4 to 4, of up to 200 classes: lse is below 10, and so is what is rounded.
BOUND = 300 * EPS["float32"] * 10
CASES = [((1, 1), {}), ((7, 33), {}), ((40, 200), {}), ((7, 33), {"smoothing": 0.1}), ((7, 33), {"z_loss": 0.01}),
         ((7, 33), {"ignore": 3})]


@pytest.mark.parametrize("shape,options", CASES)
@pytest.mark.parametrize("integers", ["int32", "int64"])
@pytest.mark.parametrize("copies", [False, True])
def test_cross_entropy(random, monkeypatch, shape, options, integers, copies):
    if copies:
        monkeypatch.setattr(vernier.default_queue().device, "_shares_host", False)
    x, lse = 4 * reals(random, shape), np.empty(shape[0], "f4")
    targets = random.integers(0, shape[1], shape[0]).astype(integers)
    weights = reals(random, shape[0])
    wanted = reference(x, targets, weights=double(weights), **options)
    loss, dx = vernier.cross_entropy(x, targets, dx=True, weights=weights, lse=lse, **options)
    near(loss, wanted[0], BOUND)
    near(dx, wanted[1], BOUND)
    near(lse, wanted[2], BOUND)


def test_in_place(random):
    x, targets = 4 * reals(random, (9, 20)), random.integers(0, 20, 18)[::2]
    wanted = reference(x, targets)
    loss, dx = vernier.cross_entropy(x, targets, dx=x)
    assert dx is x
    near(loss, wanted[0], BOUND)
    near(x, wanted[1], BOUND)


def test_tensors(random):
    x, targets = 4 * reals(random, (9, 20)), random.integers(0, 20, 9)[::-1]
    wanted = reference(x, targets)
    loss, dx = vernier.cross_entropy(vernier.tensor(x), targets, dx=True)
    near(loss.numpy(), wanted[0], BOUND)
    near(dx.numpy(), wanted[1], BOUND)


X, T = np.zeros((3, 4), "f4"), np.zeros(3, "i8")


@pytest.mark.parametrize("error,words,call", [
    (TypeError, "targets has dtype float32", lambda: vernier.cross_entropy(X, X[:, 0])),
    (TypeError, "targets is a Tensor", lambda: vernier.cross_entropy(X, vernier.tensor(X))),
    (vernier.InvalidError, "targets has 2 dimensions", lambda: vernier.cross_entropy(X, T[None])),
    (vernier.InvalidError, "x has 1 dimensions", lambda: vernier.cross_entropy(X[0], T)),
    (vernier.InvalidError, "ignore is 0", lambda: vernier.cross_entropy(X, T, ignore=0)),
    (vernier.InvalidError, "vn_cross_entropy: ", lambda: vernier.cross_entropy(X, T[:2])),
    (vernier.InvalidError, "vn_cross_entropy: ", lambda: vernier.cross_entropy(X, T, smoothing=2)),
    (vernier.InvalidError, "vn_cross_entropy: ", lambda: vernier.cross_entropy(X, T, dx=X[:, :3])),
])
def test_wrong(error, words, call):
    with pytest.raises(error, match=words):
        call()
