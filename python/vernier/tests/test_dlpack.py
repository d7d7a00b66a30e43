# SPDX-License-Identifier: Apache-2.0
"""Arrays of other libraries by DLPack: on the host, in a cl_mem, and in CUDA's memory, where a driver is not needed."""
import ctypes
import gc

import numpy as np
import pytest

import vernier
from vernier import _dlpack

from .arrays import double, integers, same

ONE = {"variant": "gemm"}
HOST, CUDA, PINNED, OPENCL, METAL = 1, 2, 3, 4, 8
CODES = {"i": 0, "f": 2}
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi))


class Lender:
    """An array of a library that has DLPack before version 1, or from it on; it counts what it got back."""

    def __init__(self, like, device=HOST, data=None, versioned=False, read_only=False, code=None, index=0, offset=0,
                 has_strides=True):
        form = _dlpack._ManagedVersioned if versioned else _dlpack._Managed
        self.like, self.device, self.index, self.versioned, self.given_back = like, device, index, versioned, 0
        self.stream = "not asked"
        self.keep = ((ctypes.c_int64 * like.ndim)(*like.shape),
                     (ctypes.c_int64 * like.ndim)(*(s // like.itemsize for s in like.strides)),
                     ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._back))
        self.managed = form()
        if versioned:
            self.managed.major, self.managed.flags = 1, int(read_only)
        t = self.managed.tensor
        t.data, t.byte_offset = like.ctypes.data if data is None else data, offset
        t.device.type, t.device.id, t.ndim = device, index, like.ndim
        t.code, t.bits, t.lanes = CODES[like.dtype.kind] if code is None else code, 8 * like.itemsize, 1
        t.shape = self.keep[0]
        if has_strides:
            t.strides = self.keep[1]
        self.managed.deleter = ctypes.cast(self.keep[2], ctypes.c_void_p).value

    def _back(self, _):
        self.given_back += 1

    def __dlpack_device__(self):
        return self.device, self.index

    def __dlpack__(self, stream=None, **options):
        if not self.versioned and options:
            raise TypeError("unexpected keyword argument 'max_version'")
        self.stream = stream
        return _new(ctypes.addressof(self.managed), b"dltensor_versioned" if self.versioned else b"dltensor", None)


# ---- on the host ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("device", [HOST, PINNED])
def test_host(random, versioned, device):
    a, b = Lender(integers(random, (6, 8)), device, versioned=versioned), integers(random, (9, 8))
    out = Lender(np.zeros((6, 9), "f4"), device, versioned=versioned)
    assert vernier.gemm(a, Lender(b.T, device), out, **ONE) is out
    same(out.like, double(a.like) @ double(b).T)
    gc.collect()
    assert a.given_back == 1 and out.given_back >= 1


def test_host_memory_is_used_itself(random):
    a = integers(random, (5, 5))
    x = vernier._arrays.as_array(Lender(a, has_strides=False), "a")
    assert x.ctypes.data == a.ctypes.data and x.strides == a.strides and x.flags.writeable
    a[0, 0] = 77
    assert x[0, 0] == 77


def test_host_offset(random):
    a = integers(random, (6, 8))
    same(vernier.gemm(Lender(a[2:, 1:7], data=a.ctypes.data, offset=2 * 32 + 4), np.eye(6, dtype="f4"), **ONE),
         double(a)[2:, 1:7])


def test_host_bf16(random):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a = integers(random, (4, 6))
    bits = Lender(a.astype(ml_dtypes.bfloat16).view("i2"), code=4)
    assert vernier.softmax(bits).dtype == ml_dtypes.bfloat16
    same(vernier.gemm(bits, bits.like.view(ml_dtypes.bfloat16).T, dtype="f4", **ONE), double(a) @ double(a).T)


def test_pytorch(random):
    torch = pytest.importorskip("torch")
    a, b = torch.tensor(integers(random, (4, 6))), torch.tensor(integers(random, (6, 5)))
    out = torch.zeros(5, 4).T
    vernier.gemm(a, b, out, **ONE)
    same(out.numpy(), double(a.numpy()) @ double(b.numpy()))


# ---- in a cl_mem -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cl_queue():
    cl = pytest.importorskip("pyopencl")
    name = vernier.default_queue().device.info.platform
    for platform in cl.get_platforms():
        if platform.name == name and platform.get_devices():
            return cl.CommandQueue(cl.Context(platform.get_devices()[:1]))
    pytest.skip(f"pyopencl does not see {name}")


def put(queue, a, **options):
    """An array in a cl_mem, by DLPack."""
    import pyopencl as cl
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    memory = cl.Buffer(queue.context, flags, hostbuf=options.pop("whole", a))
    it = Lender(a, OPENCL, memory.int_ptr, **options)
    it.memory = memory
    return it


def get(queue, it):
    import pyopencl as cl
    out = np.empty_like(it.like)
    cl.enqueue_copy(queue, out, it.memory)
    return out


@pytest.mark.parametrize("versioned", [False, True])
def test_opencl(random, cl_queue, versioned):
    a, b = (put(cl_queue, integers(random, s), versioned=versioned) for s in ((7, 9), (9, 5)))
    wanted = double(a.like) @ double(b.like)
    made = vernier.gemm(a, b, **ONE)
    assert isinstance(made, vernier.Tensor) and made.shape == (7, 5)
    assert vernier.explain()["variant"] == "gemm"
    same(made.numpy(), wanted)
    same(vernier.gemm(made, np.eye(5, dtype="f4"), **ONE).numpy(), wanted)
    out = put(cl_queue, np.zeros((7, 5), "f4"), versioned=versioned)
    assert vernier.gemm(a, b, out, bias=np.ones(5, "f4"), act="relu", **ONE) is out
    same(get(cl_queue, out), np.maximum(wanted + 1, 0))
    gc.collect()
    assert a.given_back == 2 and out.given_back == 1


def test_opencl_views(random, cl_queue):
    whole = integers(random, (10, 12))
    x = put(cl_queue, whole[3:9, 2:8], whole=whole, offset=(3 * 12 + 2) * 4)
    same(vernier.gemm(x, x, **ONE).numpy(), double(whole)[3:9, 2:8] @ double(whole)[3:9, 2:8])
    assert np.abs(vernier.softmax(x).numpy().sum(axis=1) - 1).max() < 1e-6


def test_opencl_refused(random, cl_queue):
    a = integers(random, (4, 4))
    x = put(cl_queue, a)
    with pytest.raises(vernier.InvalidError, match="out is read-only"):
        vernier.gemm(x, x, put(cl_queue, a, versioned=True, read_only=True))
    with pytest.raises(vernier.InvalidError, match="a begins at byte 2 of its cl_mem; it needs a multiple of 4"):
        vernier.gemm(put(cl_queue, a, offset=2), x)
    with pytest.raises(vernier.InvalidError, match="vn_gemm: B .*buffer"):
        vernier.gemm(x, put(cl_queue, a, offset=32))
    with pytest.raises(TypeError, match="a has dtype int32"):
        vernier.gemm(put(cl_queue, a.astype("i4")), x)
    with pytest.raises(TypeError, match="in a device's memory; it needs the host's"):
        vernier.tensor(x)


# ---- CUDA's memory, beside a driver that takes notes -------------------------------------------------------


def test_cuda_without_a_driver(monkeypatch):
    def missing():
        raise OSError("libcuda.so.1: no such file")
    monkeypatch.setattr(_dlpack, "_cuda_driver", missing)
    monkeypatch.setattr(_dlpack, "_devices", {})
    it = Lender(np.zeros((4, 4), "f4"), CUDA, 4096)
    with pytest.raises(vernier.NoDeviceError, match="a is in memory of CUDA device 0, and its driver cannot be loaded"):
        vernier.gemm(it, it)
    assert it.stream == "not asked"


class Driver:
    """CUDA's driver, as far as a primary context goes."""

    def __init__(self, error=0):
        self.error = error

    def cuInit(self, flags):
        return 0

    def cuDeviceGet(self, device, index):
        device._obj.value = index + 10
        return 0

    def cuDevicePrimaryCtxRetain(self, context, device):
        context._obj.value = 0x1000 + device.value
        return self.error


def test_cuda_context(monkeypatch):
    monkeypatch.setattr(_dlpack, "_devices", {})
    monkeypatch.setattr(_dlpack, "_cuda_driver", lambda: Driver(101))
    with pytest.raises(vernier.NoDeviceError, match="device 3, whose primary context the driver refuses with error 101"):
        vernier.gemm(Lender(np.zeros((4, 4), "f4"), CUDA, 4096, index=3), np.zeros((4, 4), "f4"))


def test_cuda_memory(random, monkeypatch):
    """What the C library is given: the primary context, an address with its bytes, the default stream."""
    seen = []
    device, queue = vernier.default_queue().device, vernier.default_queue()

    def opens(name, handle):
        def function(out, *arguments):
            seen.append((name, *(a.value if hasattr(a, "value") else a for a in arguments)))
            out._obj.value = handle()
            return 0
        monkeypatch.setattr(vernier._library.lib, name, function)

    spare = []

    def buffer():
        spare.append(vernier.Buffer(device, 4096))
        handle = spare[-1]._open
        spare[-1]._finalizer.detach()           # it is the adopter's
        return handle

    monkeypatch.setattr(_dlpack, "_devices", {})
    monkeypatch.setattr(_dlpack, "_cuda_driver", Driver)
    monkeypatch.setattr(_dlpack, "queue_on", lambda device: queue)
    own = vernier.Device(device.info.spec)
    own._finalizer.detach()
    opens("vn_cuda_device_open", lambda: own.handle)
    opens("vn_cuda_buffer_open", buffer)
    a = Lender(np.zeros((4, 8), "f4")[:, :5], CUDA, 65536, index=1, offset=64)
    it = vernier._arrays.as_array(a, "a")
    assert seen == [("vn_cuda_device_open", 0x1000 + 11),
                    ("vn_cuda_buffer_open", own.handle, 65536 + 64, 4 * (3 * 8 + 5))]
    assert (it.shape, it.strides, it.start, a.stream) == ((4, 5), (8, 1), 0, 1)
    del it
    gc.collect()
    assert a.given_back == 1


# ---- what is no array ----------------------------------------------------------------------------------------


def test_refused():
    f = np.zeros((4, 4), "f4")
    with pytest.raises(TypeError, match=r"b is in memory of DLPack's device type 8; it needs the host's .*OpenCL's"):
        vernier.gemm(f, Lender(f, METAL))
    with pytest.raises(TypeError, match="a has DLPack's type 9 of 32 bits"):
        vernier.gemm(Lender(f, code=9), f)
    once = Lender(f)
    capsule = once.__dlpack__()
    once.__dlpack__ = lambda **options: capsule
    vernier.gemm(once, f, **ONE)
    with pytest.raises(TypeError, match="needs a capsule \"dltensor\" not used before"):
        vernier.gemm(once, f, **ONE)
    with pytest.raises(TypeError, match="of DLPack 2.0; it needs version 1"):
        later = Lender(f, versioned=True)
        later.managed.major = 2
        vernier.gemm(later, f)
    with pytest.raises(vernier.InvalidError, match="out is read-only"):
        vernier.gemm(f, f, Lender(f.copy(), versioned=True, read_only=True))
