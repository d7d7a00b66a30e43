# SPDX-License-Identifier: Apache-2.0
import itertools

import numpy as np
import pytest

import vernier

from .arrays import double, integers, same

# x, w and the options: one to three spatial dimensions, edges, and what is not symmetric
CASES = {
    "1-D": ((2, 3, 9), (4, 3, 3), {}),
    "1-D padded": ((1, 2, 8), (3, 2, 3), {"padding": 1}),
    "1-D stride": ((1, 2, 11), (3, 2, 2), {"stride": 3}),
    "2-D": ((2, 3, 8, 9), (4, 3, 3, 2), {}),
    "2-D 1x1": ((1, 5, 6, 7), (4, 5, 1, 1), {}),
    "2-D padded": ((1, 3, 7, 6), (2, 3, 3, 3), {"padding": (1, 2)}),
    "2-D pairs": ((1, 2, 7, 6), (2, 2, 3, 3), {"padding": ((0, 1), (2, 0))}),
    "2-D stride": ((1, 2, 9, 8), (3, 2, 3, 3), {"stride": (2, 3), "padding": 1}),
    "2-D dilation": ((1, 2, 9, 8), (3, 2, 3, 2), {"dilation": (2, 3)}),
    "groups": ((1, 4, 6, 5), (6, 2, 3, 3), {"groups": 2, "padding": 1}),
    "depthwise": ((2, 4, 6, 5), (4, 1, 3, 3), {"groups": 4}),
    "3-D": ((1, 2, 4, 5, 6), (3, 2, 2, 3, 2), {"padding": (0, 1, 0)}),
}


def spread(values, count):
    return [values] * count if isinstance(values, int) else list(values)


def windows(x_shape, w_shape, stride=1, padding=0, dilation=1, groups=1):
    """For each place of the filter: its index, and the slices of padded x that meet all of y; pads; y's shape."""
    count = len(x_shape) - 2
    stride, dilation = spread(stride, count), spread(dilation, count)
    pads = [(p, p) if isinstance(p, int) else p for p in spread(padding, count)]
    sizes = [(n + sum(p) - d * (r - 1) - 1) // s + 1
             for n, r, s, d, p in zip(x_shape[2:], w_shape[2:], stride, dilation, pads)]
    places = [(at, tuple(slice(i * d, i * d + s * (n - 1) + 1, s) for i, d, s, n in zip(at, dilation, stride, sizes)))
              for at in itertools.product(*map(range, w_shape[2:]))]
    return places, pads, (x_shape[0], w_shape[0], *sizes)


def grouped(t, groups, axis):
    return np.split(t, groups, axis)


def flat(t):
    return t.reshape(*t.shape[:2], -1)


def forward(x, w, **options):
    groups = options.get("groups", 1)
    places, pads, shape = windows(x.shape, w.shape, **options)
    padded = np.pad(double(x), [(0, 0), (0, 0), *pads])
    y = np.zeros(shape)
    for yg, xg, wg in zip(grouped(y, groups, 1), grouped(padded, groups, 1), grouped(double(w), groups, 0)):
        for at, part in places:
            yg += np.einsum("nc...,kc->nk...", xg[(..., *part)], wg[(..., *at)])
    return y


def backward(x, w, dy, **options):
    """The gradients of x and w."""
    groups = options.get("groups", 1)
    places, pads, _ = windows(x.shape, w.shape, **options)
    padded = np.pad(double(x), [(0, 0), (0, 0), *pads])
    dx, dw = np.zeros(padded.shape), np.zeros(w.shape)
    for g in zip(*(grouped(t, groups, a) for t, a in ((dx, 1), (padded, 1), (double(w), 0), (dw, 0), (double(dy), 1)))):
        dxg, xg, wg, dwg, dyg = g
        for at, part in places:
            dxg[(..., *part)] += np.einsum("nk...,kc->nc...", dyg, wg[(..., *at)])
            dwg[(..., *at)] += np.einsum("ncp,nkp->kc", flat(xg[(..., *part)]), flat(dyg))
    inner = tuple(slice(p, p + n) for (p, _), n in zip(pads, x.shape[2:]))
    return dx[(..., *inner)], dw


def channels_last(t):
    return np.ascontiguousarray(np.moveaxis(t, 1, -1))


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("copies", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_conv(random, monkeypatch, case, layout, copies):
    if copies:
        monkeypatch.setattr(vernier.default_queue().device, "_shares_host", False)
    x_shape, w_shape, options = CASES[case]
    x, w = integers(random, x_shape, most=3), integers(random, w_shape, most=3)
    wanted = forward(x, w, **options)
    if layout == "NHWC":
        y = vernier.conv(channels_last(x), channels_last(w), layout=layout, **options)
        same(np.moveaxis(y, -1, 1), wanted)
    else:
        same(vernier.conv(x, w, **options), wanted)


@pytest.mark.parametrize("case", [c for c in CASES if c != "depthwise"])
def test_backward(random, case):
    x_shape, w_shape, options = CASES[case]
    x, w = integers(random, x_shape, most=3), integers(random, w_shape, most=3)
    dy = integers(random, windows(x_shape, w_shape, **options)[2], most=3)
    dx, dw = backward(x, w, dy, **options)
    same(vernier.conv_backward_data(dy, w, np.empty(x_shape, "f4"), **options), dx)
    out = integers(random, w_shape, most=3)
    before = double(out)
    same(vernier.conv_backward_filter(x, dy, out, beta=1, **options), dw + before)


def test_bias_and_activation(random):
    x, w = integers(random, (2, 3, 8, 9), most=3), integers(random, (4, 3, 3, 2), most=3)
    bias = integers(random, 4, most=9)
    wanted = forward(x, w) + double(bias)[:, None, None]
    residual = integers(random, wanted.shape, most=9)
    y = vernier.conv(channels_last(x), channels_last(w), bias=bias, beta=2, residual=channels_last(residual),
                     act="relu", layout="NHWC")
    same(np.moveaxis(y, -1, 1), np.maximum(wanted + 2 * double(residual), 0))


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_tensors(random, layout):
    x, w = integers(random, (2, 3, 8, 9), most=3), integers(random, (4, 3, 3, 2), most=3)
    if layout == "NHWC":
        y = vernier.conv(vernier.tensor(channels_last(x)), vernier.tensor(channels_last(w)), layout=layout)
        same(np.moveaxis(y.numpy(), -1, 1), forward(x, w))
    else:
        same(vernier.conv(vernier.tensor(x), vernier.tensor(w)).numpy(), forward(x, w))


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_packed_filter(random, layout):
    x, y, w = (integers(random, shape, most=3) for shape in ((2, 8, 7, 7), (2, 40, 7, 7), (40, 8, 3, 3)))
    if layout == "NHWC":
        x, y, w = channels_last(x), channels_last(y), channels_last(w)
    x, y, w = (vernier.tensor(np.ascontiguousarray(t)) for t in (x, y, w))
    more = {"padding": 1, "layout": layout}
    for function, image, out, backward in ((vernier.conv, x, y, False), (vernier.conv_backward_data, y, x, True)):
        right = function(image, w, out, **more).numpy()
        with vernier.pack_filter(image, w, out, backward=backward, **more) as packed:
            assert packed.bytes == 0 or packed.bytes >= 4 * 40 * 8 * 3 * 3      # each element has its place
            same(function(image, w, out, packed=packed, **more).numpy(), right)
            with pytest.raises(vernier.InvalidError, match="another view"):
                function(image, vernier.tensor(w.numpy()), out, packed=packed, **more)
    with pytest.raises(TypeError, match="vernier.Tensor"):
        vernier.pack_filter(x, w.numpy(), y, **more)


X, W = np.zeros((1, 2, 5, 5), "f4"), np.zeros((3, 2, 3, 3), "f4")


@pytest.mark.parametrize("words,call", [
    ("x has 2 dimensions", lambda: vernier.conv(X[0, 0], W)),
    ("x has 6 dimensions", lambda: vernier.conv(X[None, None], W[None, None])),
    ("x has 4 dimensions and w has 3", lambda: vernier.conv(X, W[0])),
    ("stride has 3 values", lambda: vernier.conv(X, W, stride=(1, 2, 3))),
    ("padding is ", lambda: vernier.conv(X, W, padding=((1, 1),))),
    ("layout is 'CHWN'", lambda: vernier.conv(X, W, layout="CHWN")),
    ("beta is 1", lambda: vernier.conv(X, W, beta=1)),
    ("vn_conv_forward: ", lambda: vernier.conv(X, W, groups=2)),
    ("vn_conv_forward: ", lambda: vernier.conv(X, W, stride=-1)),
    ("vn_conv_forward: ", lambda: vernier.conv(X, W, padding=-1)),
    ("vn_conv_forward: ", lambda: vernier.conv(X, W, np.zeros((1, 3, 3, 4), "f4"))),
    ("vn_conv_forward: ", lambda: vernier.conv(X, W, bias=np.zeros(4, "f4"))),
    ("vn_conv_backward_data: ", lambda: vernier.conv_backward_data(X, W, X.copy())),
])
def test_wrong(words, call):
    with pytest.raises(vernier.InvalidError, match=words):
        call()
