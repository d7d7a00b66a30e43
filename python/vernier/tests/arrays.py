# SPDX-License-Identifier: Apache-2.0
"""Arrays for tests: small integers, whose sums every dtype holds exactly, and the bound of those that round."""
import numpy as np

import vernier
from vernier._arrays import bfloat16

DTYPES = ["float32", "float16"] + (["bfloat16"] if bfloat16 is not None else [])
if vernier.devices() and vernier.default_queue().device.info.has_f64:
    DTYPES.append("float64")
EPS = {"float32": 2.0 ** -24, "float16": 2.0 ** -11, "bfloat16": 2.0 ** -8, "float64": 2.0 ** -53}


def dtype(name):
    return bfloat16 if name == "bfloat16" else np.dtype(name)


def integers(random, shape, name="float32", most=1):
    """Of -most to most: a sum of 256 products of them is exact in bf16, too."""
    return random.integers(-most, most, size=shape, endpoint=True).astype(dtype(name))


def reals(random, shape, name="float32"):
    return random.uniform(-1, 1, size=shape).astype(dtype(name))


def double(x):
    return np.asarray(x).astype(np.float64)


def same(got, wanted):
    assert got.shape == wanted.shape
    np.testing.assert_array_equal(double(got), wanted)


def near(got, wanted, bound):
    """bound: an array of what the difference may be at most."""
    assert got.shape == wanted.shape
    wrong = np.abs(double(got) - wanted) > bound
    assert not wrong.any(), f"{wrong.sum()} of {wrong.size} elements are outside the bound"


ACTIVATIONS = {
    None: lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3))),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
}
