# SPDX-License-Identifier: Apache-2.0
import copy
import doctest
import gc
import importlib
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import vernier
import vernier._library

from .arrays import double, integers, same

ONE = {"variant": "gemm"}


@pytest.mark.parametrize("module", ["_library", "_device", "_arrays", "_gemm", "_conv", "_attention", "_cross_entropy", "_softmax", "report"])
def test_doctests(module):
    found = doctest.testmod(importlib.import_module(f"vernier.{module}"))
    assert found.failed == 0


def test_exports():
    for name in vernier.__all__:
        assert getattr(vernier, name).__doc__ if name != "__version__" else vernier.__version__


# ---- devices ------------------------------------------------------------------------------------

def test_devices():
    for info in vernier.devices():
        assert info.spec and info.name and info.compute_units > 0 and info.memory > 0
        with vernier.Device(info.spec) as d:
            assert d.info == info and info.spec in repr(d)


@pytest.mark.parametrize("spec", ["no such device", "opencl:999", "\n"])
def test_no_such_device(spec):
    with pytest.raises(vernier.NoDeviceError, match="vn_device_open: .*spec") as caught:
        vernier.Device(spec)
    assert caught.value.status == "VN_NO_DEVICE" and isinstance(caught.value, (RuntimeError, LookupError))


def test_two_devices(random):
    """Each opened device is one of its own, also of one GPU or CPU."""
    other = vernier.Queue(vernier.Device(vernier.default_queue().device.info.spec))
    a, b = integers(random, (5, 6)), integers(random, (6, 7))
    same(vernier.gemm(a, b, queue=other, **ONE), double(a) @ double(b))
    with pytest.raises(vernier.InvalidError, match="two opened vn_device"):
        vernier.gemm(vernier.tensor(a), b, queue=other, **ONE)


def test_set_device(random):
    spec = vernier.default_queue().device.info.spec
    before = vernier.default_queue()
    vernier.set_device(spec)
    assert vernier.default_queue() is not before and vernier.default_queue() is vernier.default_queue()
    with pytest.raises(vernier.NoDeviceError):
        vernier.set_device("no such device")
    assert vernier.default_queue().device.info.spec == spec
    same(vernier.gemm(np.eye(3, dtype="f4"), np.eye(3, dtype="f4"), **ONE), np.eye(3))


# ---- queues, events, buffers -------------------------------------------------------------------------

def test_events(random):
    one, two = vernier.Queue(vernier.default_queue().device), vernier.Queue(vernier.default_queue().device)
    a, b = integers(random, (40, 50)), integers(random, (50, 60))
    x, y = vernier.tensor(a, one), vernier.tensor(b, one)
    begin = one.record()
    z = vernier.gemm(x, y, queue=one, **ONE)
    end = one.record()
    two.wait(end)
    w = vernier.gemm(z.T, z, queue=two, **ONE)
    same(w.numpy(two), (double(a) @ double(b)).T @ (double(a) @ double(b)))
    end.finish()
    assert end.seconds_since(begin) >= 0


def test_explain(random):
    queue = vernier.Queue(vernier.default_queue().device)
    assert queue.explain() == {} and "no operation" in str(queue.explain())
    vernier.gemm(integers(random, (5, 6)), integers(random, (6, 7)), queue=queue, **ONE)
    it = queue.explain()
    assert it["op"] == "gemm" and it["variant"] == "gemm" and it["type"] == "f32"
    assert "variant gemm (" in str(it) and all(p["variant"] in str(it) for p in it["passed_over"])
    assert "not gemm," not in str(it) and "not gemm:" not in str(it)


def test_workspace(random):
    queue = vernier.Queue(vernier.default_queue().device)
    assert queue.workspace == 0
    queue.limit_workspace(0)
    a, b = integers(random, (300, 280)), integers(random, (280, 290))
    same(vernier.gemm(a, b, queue=queue, **ONE), double(a) @ double(b))
    assert queue.workspace == 0


def test_kept_buffers(random):
    """An operand that was used first of all is still open where the others of its call are new."""
    queue = vernier.Queue(vernier.default_queue().device)
    a = integers(random, (4, 4))
    others = [integers(random, (4, 4)) for _ in range(queue.KEPT + 4)]
    for b in others:
        same(vernier.gemm(a, b, np.empty((4, 4), np.float32), queue=queue, **ONE), double(a) @ double(b))


CLOSED = {
    "queue": lambda: vernier.Queue(vernier.default_queue().device),
    "device": lambda: vernier.Device(vernier.default_queue().device.info.spec),
    "buffer": lambda: vernier.Buffer(vernier.default_queue().device, 64),
    "event": lambda: vernier.default_queue().record(),
}


@pytest.mark.parametrize("noun", CLOSED)
def test_closed(noun):
    it = CLOSED[noun]()
    assert it.handle
    with it as entered:
        assert entered is it
    it.close()
    with pytest.raises(vernier.InvalidError, match=f"the {noun} is closed"):
        it.handle


@pytest.mark.parametrize("noun", [*CLOSED, "tensor"])
def test_pickling(noun):
    it = CLOSED[noun]() if noun in CLOSED else vernier.empty((2, 2))
    for take in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be pickled|cannot be copied|belongs to its process"):
            take(it)


def test_closed_by_nobody():
    """What nothing refers to is closed, in any order."""
    for _ in range(300):
        device = vernier.Device(vernier.default_queue().device.info.spec)
        queue, buffer = vernier.Queue(device), vernier.Buffer(device, 64)
        event = queue.record()
        del device, buffer, queue, event
    gc.collect()


@pytest.mark.parametrize("nbytes", [2 ** 62, 2 ** 64 - 1])
def test_too_large(nbytes):
    with pytest.raises(vernier.NoMemoryError, match="bytes is"):
        vernier.Buffer(vernier.default_queue().device, nbytes)
    with pytest.raises(MemoryError):
        vernier.empty((2 ** 40, 2 ** 20))


def test_tensor_arguments():
    b = vernier.Buffer(vernier.default_queue().device, 64)
    assert vernier.Tensor(b, "f4", (2, 3)).strides == (3, 1)
    with pytest.raises(vernier.InvalidError, match="strides has 1"):
        vernier.Tensor(b, "f4", (2, 3), (1,))
    with pytest.raises(TypeError, match="dtype has dtype int32"):
        vernier.Tensor(b, "i4", (2, 3))
    with pytest.raises(vernier.InvalidError, match="vn_gemm: A "):
        t = vernier.Tensor(b, "f4", (5, 5))
        vernier.gemm(t, t)


# ---- threads, forks, the command ------------------------------------------------------------------------

def test_threads(random):
    pairs = [(integers(random, (9, 8)), integers(random, (8, 7))) for _ in range(64)]
    wrong, queues = [], set()

    def work(mine):
        for a, b in mine:
            queues.add(id(vernier.default_queue()))
            if not np.array_equal(vernier.gemm(a, b, **ONE), double(a) @ double(b)):
                wrong.append(a)

    threads = [threading.Thread(target=work, args=(pairs[i::4],)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and len(queues) == 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_fork():
    """A child says what to do instead."""
    vernier.default_queue()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            vernier.gemm(np.eye(3, dtype="f4"), np.eye(3, dtype="f4"), **ONE)
        except vernier.FailedError as why:
            os.write(write, str(why).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as said:
        sentence = said.read()
    os.waitpid(child, 0)
    assert "forked" in sentence and "set_start_method(\"spawn\")" in sentence


def product():
    return vernier.gemm(np.full((2, 2), 3, "f4"), np.eye(2, dtype="f4"), **ONE).tolist()


def test_spawn():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(product) == [[3, 3], [3, 3]]


def run(*words, **environment):
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, env={**os.environ, **environment},
                          timeout=240)


def test_command():
    done = run("-m", "vernier", "--version")
    if "cannot be run" in done.stderr:
        pytest.skip("there is no command here")
    assert done.returncode == 0 and done.stdout == f"vernier {vernier.version()}\n"
    assert run("-m", "vernier", "no_such").returncode == 2


def test_no_library():
    done = run("-c", "import vernier", VERNIER_LIBRARY="/no/such/library.so")
    assert done.returncode and "/no/such/library.so cannot be loaded" in done.stderr and "libOpenCL" in done.stderr


def test_other_library():
    done = run("-c", "import vernier", VERNIER_LIBRARY="libc.so.6")
    assert done.returncode and "libc.so.6 has no vn_version()" in done.stderr


def test_no_device():
    done = run("-c", "import vernier; vernier.default_queue()", VERNIER_DEVICE="no such device")
    assert done.returncode and "NoDeviceError: vn_device_open: " in done.stderr
