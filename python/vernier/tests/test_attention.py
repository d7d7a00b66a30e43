# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

import vernier

from .arrays import EPS, double, near, reals


def reference(q, k, v, causal=None, window=0, mask=0.0, scale=None):
    """The output, and the logarithm of the sum of exponentials."""
    group = q.shape[1] // k.shape[1]
    k, v = (np.repeat(double(t), group, axis=1) for t in (k, v))
    s = double(q) @ np.swapaxes(k, -1, -2) * (scale or q.shape[-1] ** -0.5) + double(mask)
    if causal:
        i, j = np.indices(s.shape[-2:])
        i = i + (s.shape[-1] - s.shape[-2] if causal == "last" else 0)
        s = np.where((j > i) | (j <= i - window if window else False), -np.inf, s)
    top = s.max(axis=-1, keepdims=True)
    e = np.exp(s - top)
    return e / e.sum(axis=-1, keepdims=True) @ v, (np.log(e.sum(axis=-1, keepdims=True)) + top)[..., 0]


def operands(random, b=2, heads=4, kv_heads=2, queries=9, keys=13, d=8, dv=8):
    return (reals(random, (b, heads, queries, d)), reals(random, (b, kv_heads, keys, d)),
            reals(random, (b, kv_heads, keys, dv)))


# Scores of 8 products are at most 3; weights are at most 1 and so are values: sums of 13 of them.
BOUND = 200 * EPS["float32"]


@pytest.mark.parametrize("causal,window", [(None, 0), ("last", 0), ("last", 3)])
@pytest.mark.parametrize("heads,kv_heads", [(4, 4), (4, 2), (4, 1)])
@pytest.mark.parametrize("queries", [1, 9, 13])
def test_attention(random, queries, heads, kv_heads, causal, window):
    q, k, v = operands(random, heads=heads, kv_heads=kv_heads, queries=queries)
    lse = np.empty(q.shape[:3], "f4")
    wanted, sums = reference(q, k, v, causal, window)
    near(vernier.attention(q, k, v, causal=causal, window=window, lse=lse), wanted, BOUND)
    near(lse, sums, BOUND * 4)


@pytest.mark.parametrize("copies", [False, True])
def test_stored_by_places(random, monkeypatch, copies):
    """(B, S, H, D), as frameworks store them: views, without a copy."""
    if copies:
        monkeypatch.setattr(vernier.default_queue().device, "_shares_host", False)
    q, k, v = (np.ascontiguousarray(t.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3) for t in operands(random))
    out = np.empty((2, 9, 4, 8), "f4").transpose(0, 2, 1, 3)
    lse = np.empty(q.shape[:3], "f4")
    assert vernier.attention(q, k, v, out, lse=lse) is out
    near(out, reference(q, k, v)[0], BOUND)


def test_tensors(random):
    q, k, v = operands(random)
    out = vernier.attention(*map(vernier.tensor, (q, k, v)), lse=vernier.empty(q.shape[:3]))
    near(out.numpy(), reference(q, k, v)[0], BOUND)


X = np.zeros((1, 2, 3, 4), "f4")


@pytest.mark.parametrize("words,call", [
    ("queries has 3 dimensions", lambda: vernier.attention(X[0], X, X)),
    ("keys has 5 dimensions", lambda: vernier.attention(X, X[None], X)),
    ("causal is 'yes'", lambda: vernier.attention(X, X, X, causal="yes")),
    ("vn_attention: ", lambda: vernier.attention(X, X[:, :, :, :2], X)),
    ("vn_attention: ", lambda: vernier.attention(X, X, X, window=2)),
    ("vn_attention: ", lambda: vernier.attention(X, X, X, X)),
    ("vn_attention: options.mask", lambda: vernier.attention(X, X, X, mask=np.zeros((3, 2), "f4"))),
])
def test_wrong(words, call):
    with pytest.raises(vernier.InvalidError, match=words):
        call()


@pytest.mark.parametrize("copies", [False, True])
def test_lengths_and_sinks(random, monkeypatch, copies):
    """Of each batch the keys and queries that it has; a sink takes a share of every row."""
    if copies:
        monkeypatch.setattr(vernier.default_queue().device, "_shares_host", False)
    q, k, v = operands(random)
    sinks = reals(random, (4,))
    out = vernier.attention(q, k, v, key_lengths=[13, 6], query_lengths=[9, 4], sinks=sinks)
    for b, (rows, seen) in enumerate([(9, 13), (4, 6)]):
        wanted, lse = reference(q[b:b + 1, :, :rows], k[b:b + 1, :, :seen], v[b:b + 1, :, :seen])
        share = 1 / (1 + np.exp(double(sinks)[None, :, None] - lse))
        near(out[b:b + 1, :, :rows], wanted * share[..., None], BOUND)
        assert not out[b, :, rows:].any()


def test_pages(random):
    """Keys and values in pages of a cache, in another order than the sequence's."""
    q, k, v = operands(random, keys=12)
    pages = np.array([[5, 0, 3], [1, 4, 2]])
    cache = [np.zeros((6, 2, 4, 8), "f4") for _ in range(2)]
    for stored, x in zip(cache, (k, v)):
        for b, row in enumerate(pages):
            for i, page in enumerate(row):
                stored[page] = x[b, :, 4 * i:4 * i + 4]
    near(vernier.attention(q, *cache, pages=pages), reference(q, k, v)[0], BOUND)


def test_integers_refused(random):
    q, k, v = operands(random)
    with pytest.raises(TypeError, match="key_lengths has dtype float64"):
        vernier.attention(q, k, v, key_lengths=np.ones(2))
    with pytest.raises(vernier.InvalidError, match="pages has 1 dimensions"):
        vernier.attention(q, k, v, pages=[1, 2])
    with pytest.raises(vernier.InvalidError, match="32 bits"):
        vernier.attention(q, k, v, key_lengths=[2 ** 40, 1])
    with pytest.raises(vernier.InvalidError, match="key_lengths"):
        vernier.attention(q, k, v, key_lengths=[1, 2, 3])


@pytest.mark.parametrize("causal,kv_heads", [(None, 4), ("last", 2)])
def test_gradients(random, causal, kv_heads):
    """Against the formulas of the gradient, in double."""
    q, k, v = operands(random, kv_heads=kv_heads)
    lse, d_out = np.empty(q.shape[:3], "f4"), reals(random, q.shape)
    out = vernier.attention(q, k, v, causal=causal, lse=lse)
    got = vernier.attention_backward(q, k, v, out, d_out, lse, causal=causal)
    wanted_out, sums = reference(q, k, v, causal)
    group, scale = 4 // kv_heads, q.shape[-1] ** -0.5
    wide = [np.repeat(double(t), group, axis=1) for t in (k, v)]
    p = np.exp(double(q) @ np.swapaxes(wide[0], -1, -2) * scale - sums[..., None])
    if causal:
        i, j = np.indices(p.shape[-2:])
        p = np.where(j > i + p.shape[-1] - p.shape[-2], 0, p)
    d = double(d_out)
    ds = p * (d @ np.swapaxes(wide[1], -1, -2) - (d * wanted_out).sum(-1, keepdims=True))
    by_group = lambda t: t.reshape(t.shape[0], kv_heads, group, *t.shape[2:]).sum(axis=2)
    wanted = (ds @ wide[0] * scale, by_group(np.swapaxes(ds, -1, -2) @ double(q) * scale),
              by_group(np.swapaxes(p, -1, -2) @ d))
    for one, right in zip(got, wanted):
        near(one, right, BOUND * 16)


def test_some_gradients(random):
    q, k, v = operands(random)
    lse = np.empty(q.shape[:3], "f4")
    out = vernier.attention(q, k, v, lse=lse)
    all_of = vernier.attention_backward(q, k, v, out, q, lse)
    kept = np.empty_like(v)
    some = vernier.attention_backward(q, k, v, out, q, lse, None, None, kept)
    assert some[:2] == (None, None) and some[2] is kept
    near(kept, double(all_of[2]), BOUND)
