# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

import vernier

from .arrays import ACTIVATIONS, DTYPES, EPS, double, integers, near, reals, same

CPU = vernier.devices() and vernier.default_queue().device.info.is_cpu
# One variant for most cases, so that few kernels are built; test_chosen() is what the library chooses.
ONE = {"variant": "gemm"}
SIZES = [(1, 1, 1), (2, 3, 4), (16, 16, 16), (17, 15, 33), (1, 40, 9), (40, 1, 9), (33, 65, 1), (64, 48, 128)]


def operand(random, rows, cols, is_transposed, name):
    return integers(random, (cols, rows), name).T if is_transposed else integers(random, (rows, cols), name)


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize("m,n,k", SIZES)
def test_exact(random, m, n, k, layout, name):
    a, b = operand(random, m, k, layout[0] == "t", name), operand(random, k, n, layout[1] == "t", name)
    c = vernier.gemm(a, b, **ONE)
    assert c.dtype == a.dtype
    same(c, double(a) @ double(b))


@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize("m,n,k", SIZES)
def test_copied(random, on_copies, m, n, k, layout):
    a, b = operand(random, m, k, layout[0] == "t", "float32"), operand(random, k, n, layout[1] == "t", "float32")
    same(vernier.gemm(a, b, **ONE), double(a) @ double(b))


@pytest.mark.parametrize("m,n,k", [(64, 64, 64), (5, 70, 33)])
def test_chosen(random, m, n, k):
    a, b = reals(random, (m, k)), reals(random, (k, n))
    c = vernier.gemm(a, b)
    near(c, double(a) @ double(b), (k + 1) * EPS["float32"] * (abs(double(a)) @ abs(double(b))))


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("k", [1, 7, 64, 300])
def test_rounded(random, k, name):
    a, b = reals(random, (31, k), name), reals(random, (k, 18), name)
    inner = EPS["float64" if name == "float64" else "float32"]
    wanted, whole = double(a) @ double(b), abs(double(a)) @ abs(double(b))
    near(vernier.gemm(a, b, **ONE), wanted, EPS[name] * abs(wanted) + (k + 1) * inner * whole * (1 + EPS[name]))


BATCHES = [((3,), (3,)), ((3,), ()), ((), (3,)), ((1,), (4,)), ((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (1, 3)),
           ((2, 1, 3), (3,)), ((2, 1, 1, 2), (2, 1)), ((0,), (0,))]


@pytest.mark.parametrize("a_batch,b_batch", BATCHES)
@pytest.mark.parametrize("name", ["float32", "float16"])
def test_batches(random, a_batch, b_batch, name):
    a, b = integers(random, (*a_batch, 9, 6), name), integers(random, (*b_batch, 6, 7), name)
    same(vernier.gemm(a, b, **ONE), double(a) @ double(b))


@pytest.mark.parametrize("m,n,k", [(0, 3, 2), (3, 0, 2), (3, 2, 0), (0, 0, 0)])
def test_empty(m, n, k):
    same(vernier.gemm(np.ones((m, k), "f4"), np.ones((k, n), "f4"), **ONE), np.zeros((m, n)))


# ---- views of arrays ---------------------------------------------------------------------------

VIEWS = {
    "rows of a larger one": lambda x: x[3:12],
    "columns of a larger one": lambda x: x[:, 5:20],
    "both": lambda x: x[1:10, 2:17],
    "every second row": lambda x: x[::2],
    "every third column": lambda x: x[:, ::3],
    "rows in reverse": lambda x: x[::-1],
    "columns in reverse": lambda x: x[:, ::-1],
    "Fortran's order": np.asfortranarray,
    "one row for all": lambda x: np.broadcast_to(x[:1], x.shape),
    "one column for all": lambda x: np.broadcast_to(x[:, :1], x.shape),
    "a diagonal": lambda x: np.lib.stride_tricks.as_strided(x, (6, 7), (4 * (x.shape[1] + 1), 4)),
    "a single element": lambda x: x[4:5, 4:5],
    "read-only": lambda x: (x.setflags(write=False), x)[1],
    "misaligned": lambda x: np.frombuffer(b"." + x.tobytes(), np.float32, offset=1).reshape(x.shape),
    "a field of a record": lambda x: np.rec.fromarrays([x, x], names="u,v")["v"],
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("side", ["a", "b", "both"])
def test_views(random, view, side):
    x = VIEWS[view](integers(random, (24, 24)))
    a = x if side != "b" else integers(random, (5, x.shape[0]))
    b = x.T if side == "both" else x if side == "b" else integers(random, (x.shape[1], 5))
    same(vernier.gemm(a, b, **ONE), double(a) @ double(b))


OUTPUTS = ["rows of a larger one", "columns of a larger one", "both", "every second row", "every third column",
           "rows in reverse", "columns in reverse", "Fortran's order", "misaligned"]


@pytest.mark.parametrize("view", OUTPUTS)
@pytest.mark.parametrize("beta", [0, 1])
@pytest.mark.parametrize("copies", [False, True])
def test_outputs(random, monkeypatch, view, beta, copies):
    if copies:
        monkeypatch.setattr(vernier.default_queue().device, "_shares_host", False)
    whole = integers(random, (24, 24))
    if view == "misaligned":
        room = np.zeros(whole.nbytes + 1, "u1")
        room[1:] = np.frombuffer(whole.tobytes(), "u1")
        whole = out = room[1:].view(np.float32).reshape(24, 24)
    elif view == "Fortran's order":
        whole = out = np.asfortranarray(whole)
    else:
        out = VIEWS[view](whole)
    wanted = double(whole).copy()
    a, b = integers(random, (out.shape[0], 8)), integers(random, (8, out.shape[1]))
    part = wanted if out is whole else VIEWS[view](wanted)
    part[...] = double(a) @ double(b) + beta * part
    assert vernier.gemm(a, b, out, beta=beta, **ONE) is out
    same(whole, wanted)                 # what lies around it, too


# ---- what is added --------------------------------------------------------------------------------

SIDES = [(7,), (1, 7), (6, 7), (1, 1, 7), (3, 6, 7), (1, 6, 7)]


@pytest.mark.parametrize("shape", SIDES)
@pytest.mark.parametrize("copies", [False, True])
def test_bias(random, monkeypatch, shape, copies):
    if copies:
        monkeypatch.setattr(vernier.default_queue().device, "_shares_host", False)
    a, b, bias = integers(random, (3, 6, 5)), integers(random, (3, 5, 7)), integers(random, shape, most=9)
    same(vernier.gemm(a, b, bias=bias, **ONE), double(a) @ double(b) + double(bias))


@pytest.mark.parametrize("shape", [(1, 7)])
def test_residual_and_scale(random, shape):
    a, b = integers(random, (3, 6, 5)), integers(random, (3, 5, 7))
    residual, scale = integers(random, shape, most=9), integers(random, shape, most=3)
    same(vernier.gemm(a, b, alpha=2, scale=scale, beta=-1, residual=residual, **ONE),
         2 * double(scale) * (double(a) @ double(b)) - double(residual))


@pytest.mark.parametrize("act", ["relu", "gelu"])
def test_activations(random, act):
    a, b = reals(random, (19, 16)), reals(random, (16, 21))
    x, whole = double(a) @ double(b), abs(double(a)) @ abs(double(b))
    # 20 units in the last place times max(1, |x|^3), and the slope, at most 1.13, times the error of the sum
    bound = 40 * EPS["float32"] * np.maximum(1, abs(x) ** 3) + 1.2 * 18 * EPS["float32"] * whole
    near(vernier.gemm(a, b, act=act, **ONE), ACTIVATIONS[act](x), bound)


@pytest.mark.parametrize("alpha,beta", [(1, 0), (0, 1), (2, 3), (-1, 1), (0, 0), (0.5, -2)])
def test_alpha_and_beta(random, alpha, beta):
    a, b, c = integers(random, (8, 9)), integers(random, (9, 10)), integers(random, (8, 10), most=50)
    wanted = alpha * double(a) @ double(b) + beta * double(c)
    same(vernier.gemm(a, b, c, alpha=alpha, beta=beta, **ONE), wanted)


@pytest.mark.parametrize("name", ["float16"])
def test_mixed(random, name):
    a, b = integers(random, (40, 700), name, most=3), integers(random, (700, 20), name, most=3)
    c = vernier.gemm(a, b, dtype=np.float32, **ONE)
    assert c.dtype == np.float32
    same(c, double(a) @ double(b))


def test_beta_zero_reads_nothing(random):
    a, b = integers(random, (8, 9)), integers(random, (9, 10))
    same(vernier.gemm(a, b, np.full((8, 10), np.nan, "f4"), **ONE), double(a) @ double(b))


def test_in_place_again(random):
    """The same memory with other numbers in it: nothing of the first call is kept but buffers."""
    a, b, c = integers(random, (8, 8)), integers(random, (8, 8)), np.empty((8, 8), "f4")
    for _ in range(5):
        a[...] = integers(random, (8, 8))
        same(vernier.gemm(a, b, c, **ONE), double(a) @ double(b))


def test_many_arrays(random):
    """More than the queue keeps buffers for."""
    arrays = [integers(random, (4, 4)) for _ in range(3 * vernier.Queue.KEPT)]
    for a, b in zip(arrays, arrays[1:] + arrays[:1]):
        same(vernier.gemm(a, b, **ONE), double(a) @ double(b))


# ---- tensors on the device ------------------------------------------------------------------------

@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
def test_tensors(random, layout):
    a, b = operand(random, 9, 8, layout[0] == "t", "float32"), operand(random, 8, 7, layout[1] == "t", "float32")
    x = vernier.tensor(a.T).T if layout[0] == "t" else vernier.tensor(a)
    y = vernier.tensor(b.T).T if layout[1] == "t" else vernier.tensor(b)
    z = vernier.gemm(x, y, **ONE)
    assert isinstance(z, vernier.Tensor)
    same(z.numpy(), double(a) @ double(b))
    same(z.T.numpy(), (double(a) @ double(b)).T)


@pytest.mark.parametrize("where", ["a", "b", "out", "bias"])
def test_tensors_beside_arrays(random, where):
    a, b, bias = integers(random, (6, 8)), integers(random, (8, 7)), integers(random, (7,))
    wanted = double(a) @ double(b) + double(bias)
    out = vernier.empty((6, 7)) if where == "out" else np.empty((6, 7), "f4")
    if where != "bias":
        got = vernier.gemm(vernier.tensor(a) if where == "a" else a, vernier.tensor(b) if where == "b" else b, out,
                           bias=bias, **ONE)
    else:
        got = vernier.gemm(vernier.tensor(a), vernier.tensor(b), out, bias=vernier.tensor(bias), **ONE)
    same(got.numpy() if where == "out" else got, wanted)


class Other:
    """Another library's array, which shares its memory by DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_dlpack(random):
    a, b = integers(random, (6, 8)), integers(random, (8, 7))
    same(vernier.gemm(Other(a), Other(b), **ONE), double(a) @ double(b))


# ---- what is wrong -----------------------------------------------------------------------------------

F = np.zeros((4, 4), "f4")
READ_ONLY = np.broadcast_to(np.float32(0), (4, 4))
WRONG = [
    (TypeError, "a has dtype int64", lambda: vernier.gemm(F.astype("i8"), F)),
    (TypeError, "b has dtype", lambda: vernier.gemm(F, F.astype(">f4"))),
    (TypeError, "b is a list", lambda: vernier.gemm(F, [[1.0]])),
    (TypeError, "out is a list", lambda: vernier.gemm(F, F, [])),
    (vernier.InvalidError, "a has 1 dimensions", lambda: vernier.gemm(F[0], F)),
    (vernier.InvalidError, "read-only", lambda: vernier.gemm(F, F, READ_ONLY)),
    (vernier.InvalidError, "batches", lambda: vernier.gemm(np.zeros((2, 4, 4), "f4"), np.zeros((3, 4, 4), "f4"))),
    (vernier.InvalidError, "7 dimensions", lambda: vernier.gemm(np.zeros((1,) * 7, "f4"), np.zeros((1,) * 7, "f4"))),
    (vernier.InvalidError, "act is 'swish'", lambda: vernier.gemm(F, F, act="swish")),
    (vernier.InvalidError, "math is 'exact'", lambda: vernier.gemm(F, F, math="exact")),
    (vernier.InvalidError, "beta is 1", lambda: vernier.gemm(F, F, beta=1)),
    (vernier.InvalidError, "vn_gemm: .*no_such", lambda: vernier.gemm(F, F, variant="no_such")),
    (vernier.InvalidError, "vn_gemm: B ", lambda: vernier.gemm(F, F[:3])),
    (vernier.InvalidError, "vn_gemm: A, B and C ", lambda: vernier.gemm(F, F.astype("f2"))),
    (vernier.InvalidError, "vn_gemm: B has 4 columns", lambda: vernier.gemm(F, F, np.zeros((4, 5), "f4"))),
    (vernier.InvalidError, "vn_gemm: C overlaps A", lambda: vernier.gemm(F, F.copy(), F)),
    (vernier.InvalidError, "vn_gemm: C overlaps B", lambda: vernier.gemm(F.copy(), F, F.T)),
    (vernier.InvalidError, "vn_gemm: options.bias ", lambda: vernier.gemm(F, F, bias=np.zeros(5, "f4"))),
    (vernier.InvalidError, "vn_gemm: options.scale ", lambda: vernier.gemm(F, F, scale=np.zeros((2, 1), "f4"))),
    (vernier.InvalidError, "vn_gemm: options.residual ", lambda: vernier.gemm(F, F, beta=1, residual=F[:2])),
    (vernier.UnsupportedError, "vn_gemm: .*cublas", lambda: vernier.gemm(F, F, variant="cublas")),
]


@pytest.mark.parametrize("error,words,call", WRONG, ids=[w for _, w, _ in WRONG])
def test_wrong(error, words, call):
    if "cublas" in words and not CPU:
        pytest.skip("of CPUs")
    with pytest.raises(error, match=words):
        call()
    assert not F.any()
