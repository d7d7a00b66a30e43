# SPDX-License-Identifier: Apache-2.0
"""Beside PyTorch's results on the CPU, in double: on its own tensors, by DLPack, where it is installed."""
import numpy as np
import pytest

import vernier

from .arrays import EPS, double, integers, near, reals, same

torch = pytest.importorskip("torch")
F = torch.nn.functional


@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("out", [False, True])
def test_product(random, batch, out):
    a, b, bias = (torch.tensor(integers(random, s)) for s in ((*batch, 7, 9), (*batch, 9, 5), (5,)))
    wanted = torch.relu(a.double() @ b.double() + bias.double()).numpy()
    to = torch.zeros(*batch, 7, 5) if out else None
    made = vernier.gemm(a, b, to, bias=bias, act="relu", variant="gemm")
    assert not out or made is to
    same(np.asarray(made), wanted)


CONVOLUTIONS = [{}, {"stride": 2, "padding": 1}, {"dilation": 2, "padding": 2}, {"groups": 2, "padding": 1}]


@pytest.mark.parametrize("options", CONVOLUTIONS)
def test_convolution(random, options):
    x = torch.tensor(integers(random, (2, 4, 9, 8)))
    w = torch.tensor(integers(random, (6, 4 // options.get("groups", 1), 3, 3)))
    wide = [t.double().requires_grad_() for t in (x, w)]
    y = F.conv2d(*wide, **options)
    dy = torch.tensor(integers(random, tuple(y.shape)))
    y.backward(dy.double())
    same(vernier.conv(x, w, **options), y.detach().numpy())
    dx, dw = np.empty(tuple(x.shape), "f4"), np.empty(tuple(w.shape), "f4")
    vernier.conv_backward_data(dy, w, dx, **options)
    vernier.conv_backward_filter(x, dy, dw, **options)
    same(dx, wide[0].grad.numpy())
    same(dw, wide[1].grad.numpy())


@pytest.mark.parametrize("log", [False, True])
def test_softmax(random, log):
    x = torch.tensor(4 * reals(random, (9, 33)))
    wanted = (F.log_softmax if log else F.softmax)(x.double(), dim=1).numpy()
    near(vernier.softmax(x, log=log), wanted, 100 * EPS["float32"] * (10 if log else 1))


def test_attention(random):
    q, k, v = (torch.tensor(reals(random, (2, 3, n, 8))) for n in (9, 13, 13))
    mask = torch.ones(9, 13, dtype=torch.bool).tril(13 - 9)
    scores = (q.double() @ k.double().transpose(2, 3) / 8 ** 0.5).masked_fill(~mask, -torch.inf)
    near(vernier.attention(q, k, v, causal="last"), (torch.softmax(scores, -1) @ v.double()).numpy(), 200 * EPS["float32"])


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy(random, smoothing):
    x, targets = torch.tensor(4 * reals(random, (7, 33))), torch.tensor(random.integers(0, 33, 7))
    targets[2] = -100
    wide = x.double().requires_grad_()
    wanted = F.cross_entropy(wide, targets, reduction="none", label_smoothing=smoothing)
    wanted.sum().backward()
    loss, dx = vernier.cross_entropy(x, targets.numpy(), dx=True, smoothing=smoothing)
    near(loss, wanted.detach().numpy(), 3000 * EPS["float32"])
    near(dx, wide.grad.numpy(), 3000 * EPS["float32"])
    assert double(loss)[2] == 0
