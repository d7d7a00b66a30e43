# SPDX-License-Identifier: Apache-2.0
"""Arrays of pyopencl: their own memory and queue, on the platform of the default device."""
import numpy as np
import pytest

import vernier

from .arrays import double, integers, same

cl = pytest.importorskip("pyopencl")
cl_array = pytest.importorskip("pyopencl.array")
ONE = {"variant": "gemm"}


@pytest.fixture(scope="module")
def context():
    name = vernier.default_queue().device.info.platform
    for platform in cl.get_platforms():
        if platform.name == name and platform.get_devices():
            return cl.Context(platform.get_devices()[:1])
    pytest.skip(f"pyopencl does not see {name}")


@pytest.fixture
def queue(context):
    return cl.CommandQueue(context)


def put(queue, x):
    return cl_array.to_device(queue, x)


@pytest.mark.parametrize("m,n,k", [(2, 3, 4), (17, 15, 33), (64, 48, 128)])
def test_product(random, queue, m, n, k):
    a, b = integers(random, (m, k)), integers(random, (k, n))
    c = vernier.gemm(put(queue, a), put(queue, b), **ONE)
    assert isinstance(c, cl_array.Array) and c.queue == queue and c.dtype == np.float32
    same(c.get(), double(a) @ double(b))


def test_views_and_out(random, queue):
    a, b = integers(random, (20, 30)), integers(random, (15, 12))
    x, y, z = put(queue, a), put(queue, b), cl_array.zeros(queue, (9, 18), np.float32)
    out = z[2:8, 3:15]
    made = vernier.gemm(x[4:10, 5:20], y, out, **ONE)
    assert made is out
    wanted = np.zeros((9, 18))
    wanted[2:8, 3:15] = double(a)[4:10, 5:20] @ double(b)
    same(z.get(), wanted)
    same(vernier.gemm(y.T, x[:15], **ONE).get(), double(b).T @ double(a)[:15])


def test_numpy_beside(random, queue):
    a, b, bias = integers(random, (5, 6)), integers(random, (6, 7)), integers(random, (7,))
    c = vernier.gemm(put(queue, a), b, bias=bias, **ONE)
    same(c.get(), double(a) @ double(b) + double(bias))


def test_in_place(random, queue):
    x = put(queue, integers(random, (4, 5)))
    wanted = vernier.softmax(x.get())
    assert vernier.softmax(x, x) is x
    np.testing.assert_array_equal(x.get(), wanted)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_convolution(random, queue, layout):
    x, w = integers(random, (1, 2, 6, 5)), integers(random, (3, 2, 3, 3))
    if layout == "NHWC":
        x, w = x.transpose(0, 2, 3, 1).copy(), w.transpose(0, 2, 3, 1).copy()
    y = vernier.conv(put(queue, x), put(queue, w), padding=1, layout=layout)
    same(y.get(), double(vernier.conv(x, w, padding=1, layout=layout)))


def test_after_its_queue(random, queue):
    """What pyopencl queued before is seen, and what it queues after sees the result."""
    a = integers(random, (32, 32))
    x = put(queue, a)
    y = vernier.gemm(x + x, x, **ONE)
    same((y - 1).get(), 2 * double(a) @ double(a) - 1)


def test_memory_changes(random, queue):
    a, b = integers(random, (4, 4)), integers(random, (4, 4))
    x = put(queue, a)
    same(vernier.gemm(x, x, **ONE).get(), double(a) @ double(a))
    x.base_data = put(queue, b).base_data
    same(vernier.gemm(x, x, **ONE).get(), double(b) @ double(b))


def test_refused(random, context, queue):
    a = integers(random, (4, 4))
    x = put(queue, a)
    with pytest.raises(vernier.InvalidError, match="stride"):
        vernier.gemm(x[::-1], x)
    with pytest.raises(vernier.InvalidError, match="no queue"):
        vernier.gemm(x.with_queue(None), x)
    with pytest.raises(vernier.InvalidError):
        vernier.gemm(x, put(cl.CommandQueue(cl.Context(context.devices)), a))
    with pytest.raises(TypeError, match="targets"):
        vernier.cross_entropy(x, put(queue, np.zeros(4, np.int32)))
