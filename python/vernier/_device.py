# SPDX-License-Identifier: Apache-2.0
"""Devices, queues, buffers and events: handles of the C library, which close themselves."""
from __future__ import annotations

import ctypes
import json
import threading
import weakref
from ctypes import byref, c_double, c_void_p
from dataclasses import dataclass
from typing import Any, Callable, Iterator

from ._library import CDeviceInfo, InvalidError, UnsupportedError, check, lib

__all__ = ["Device", "DeviceInfo", "Queue", "Buffer", "Event", "Explanation", "devices", "default_queue",
           "set_device", "explain"]


class Handle:
    """What was opened in the C library: closed by close(), by `with`, or when nothing refers to it."""

    _noun, _instead = "handle", ""

    def __init__(self, opened: c_void_p, close: Callable[[int], None]) -> None:
        self._open: int | None = opened.value
        self._finalizer = weakref.finalize(self, close, opened.value or 0)

    @property
    def handle(self) -> int:
        """The C library's pointer, for ctypes."""
        if self._open is None:
            raise InvalidError(f"the {self._noun} is closed")
        return self._open

    def close(self) -> None:
        """Closes it; a second time does nothing."""
        self._open = None
        self._finalizer()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError(f"a vernier.{type(self).__name__} belongs to its process and cannot be pickled; "
                        f"{self._instead}")


@dataclass(frozen=True)
class DeviceInfo:
    """What a device says of itself; `spec` opens exactly this one."""

    spec: str
    name: str
    vendor: str
    driver: str
    platform: str
    compute_units: int
    memory: int
    local_memory: int
    is_cpu: bool
    has_f64: bool
    uuid: str
    pci: str

    @classmethod
    def _of(cls, c: CDeviceInfo) -> DeviceInfo:
        def value(name: str) -> Any:
            v = getattr(c, name)
            return v.decode(errors="replace") if isinstance(v, bytes) else bool(v) if name in (
                "is_cpu", "has_f64") else v
        return cls(*(value(name) for name, *_ in CDeviceInfo._fields_))


def devices() -> list[DeviceInfo]:
    """All devices that there are, the first of each backend first.

    >>> [d.spec for d in devices()][0].split(":")[0] in ("opencl", "cuda")
    True
    """
    out = []
    for i in range(lib.vn_device_count()):
        c = CDeviceInfo()
        check(lib.vn_device_get(byref(c), i))
        out.append(DeviceInfo._of(c))
    return out


class Device(Handle):
    """A device, by its spec ("opencl:0"), a word of its name or platform, "cpu" or "gpu".

    None stands for $VERNIER_DEVICE, and else for the device that looks fastest.

    >>> with Device() as d:
    ...     d.info.compute_units > 0
    True
    """

    _noun, _instead = "device", "send its spec, d.info.spec, and open that there"

    def __init__(self, spec: str | None = None) -> None:
        out = c_void_p()
        check(lib.vn_device_open(byref(out), None if spec is None else spec.encode()))
        self._adopt(out)

    def _adopt(self, opened: c_void_p) -> None:
        super().__init__(opened, lib.vn_device_close)
        c = CDeviceInfo()
        check(lib.vn_device_describe(byref(c), self.handle))
        self.info = DeviceInfo._of(c)
        self._shares_host: bool | None = None

    def __repr__(self) -> str:
        return f"<vernier.Device {self.info.spec}: {self.info.name}>"

    @property
    def shares_host(self) -> bool:
        """Whether it computes in NumPy's own memory: then operations on arrays copy nothing."""
        if self._shares_host is None:
            room = ctypes.create_string_buffer(256)
            out = c_void_p()
            try:
                check(lib.vn_buffer_open_host(byref(out), self.handle, (ctypes.addressof(room) + 127) & ~127, 128))
                lib.vn_buffer_close(out)
                self._shares_host = True
            except UnsupportedError:
                self._shares_host = False
        return self._shares_host


class Buffer(Handle):
    """Bytes of device memory; `memory`, an address, makes it the host's own (a multiple of 128, on CPUs)."""

    _noun, _instead = "buffer", "send the array, tensor.numpy(), and write that there"

    def __init__(self, device: Device, nbytes: int, memory: int | None = None) -> None:
        out = c_void_p()
        if memory is None:
            check(lib.vn_buffer_open(byref(out), device.handle, nbytes))
        else:
            check(lib.vn_buffer_open_host(byref(out), device.handle, memory, nbytes))
        self._adopt(device, nbytes, out)

    def _adopt(self, device: Device, nbytes: int, opened: c_void_p) -> None:
        super().__init__(opened, lib.vn_buffer_close)
        self.device, self.nbytes = device, nbytes
        self._views: dict[tuple[int, int], Any] = {}        # _arrays.py: structs made before, with what they are of


class Event(Handle):
    """A point in a queue's work, from Queue.record()."""

    _noun, _instead = "event", "wait for it here"

    def __init__(self, queue: Queue) -> None:
        out = c_void_p()
        check(lib.vn_event_record(byref(out), queue.handle))
        super().__init__(out, lib.vn_event_close)

    def finish(self) -> None:
        """Waits until all that was queued before it is done."""
        check(lib.vn_event_finish(self.handle))

    def seconds_since(self, earlier: Event) -> float:
        """Seconds of device time from an earlier event to this one; waits for both."""
        out = c_double()
        check(lib.vn_event_seconds(byref(out), earlier.handle, self.handle))
        return out.value


class Explanation(dict):        # type: ignore[type-arg]
    """How an operation ran: a dict of what vn_queue_explain() says; as text, the most of it in lines."""

    def __str__(self) -> str:
        if not self:
            return "no operation ran on this queue yet"
        row = " ".join(f"{k}={v}" for k, v in self.get("parameters", {}).items())
        lines = [f"{self['op']} in {self['type']} on {self['device']}, {self['device_name']}",
                 f"variant {self['variant']} ({self.get('engine') or 'a library'}), {self.get('row', '')} row {row}"]
        if self.get("estimate"):
            lines.append(f"estimate {self['estimate'] * 1e3:.3g} ms, {self['flops']:.3g} flops, "
                         f"{self['bytes']:.3g} bytes, workspace {self['workspace']} bytes")
        reasons: dict[str, dict[str, None]] = {}
        for other in self.get("passed_over", []):
            if other["variant"] == self["variant"]:         # another row of the one that ran
                continue
            reasons.setdefault(other["why"], {})[other["variant"]] = None
        lines += [f"not {', '.join(variants)}: {why}" for why, variants in reasons.items()]
        return "\n".join(lines)


class Queue(Handle):
    """Runs operations in order, on a device; used by one thread at a time.

    Operations on NumPy arrays wait for their result; those on vernier.Tensor do not.
    """

    _noun, _instead = "queue", "open one there"
    KEPT = 64                   # buffers on NumPy's memory that are kept open for the next call

    def __init__(self, device: Device | None = None) -> None:
        device = device if device is not None else Device()
        out = c_void_p()
        check(lib.vn_queue_open(byref(out), device.handle))
        self._adopt(device, out)

    def _adopt(self, device: Device, opened: c_void_p) -> None:
        super().__init__(opened, lib.vn_queue_close)
        self.device = device
        self._host: dict[tuple[int, int], Buffer] = {}
        self._scratch: dict[str, Buffer] = {}

    def close(self) -> None:
        super().close()
        for kept in (self._host, self._scratch):
            for buffer in kept.values():
                buffer.close()
            kept.clear()

    def finish(self) -> None:
        """Waits until all its work is done."""
        check(lib.vn_queue_finish(self.handle))

    def record(self) -> Event:
        """An event after all that it was given so far."""
        return Event(self)

    def wait(self, event: Event) -> None:
        """What it is given from now on starts after this event, which may be another queue's."""
        check(lib.vn_queue_wait(self.handle, event.handle))

    def explain(self) -> Explanation:
        """How its last operation ran."""
        return Explanation(json.loads(lib.vn_queue_explain(self.handle).decode()))

    def limit_workspace(self, nbytes: int) -> None:
        """Operations then choose a variant whose scratch memory fits into so many bytes."""
        check(lib.vn_queue_limit_workspace(self.handle, nbytes))

    def use_workspace(self, buffer: Buffer | None) -> None:
        """Makes a buffer the scratch memory, and its bytes the limit; None: its own again."""
        check(lib.vn_queue_use_workspace(self.handle, buffer.handle if buffer else None))
        self._workspace = buffer                            # kept open

    @property
    def workspace(self) -> int:
        """The bytes of scratch memory that it holds."""
        return int(lib.vn_queue_workspace(self.handle))

    def _on_host(self, memory: int, nbytes: int) -> int:
        """The handle of a buffer on that memory of the host."""
        return self._host_buffer(memory, nbytes)._open     # type: ignore[return-value]

    def _host_buffer(self, memory: int, nbytes: int) -> Buffer:
        """A buffer on that memory of the host.

        It stays right when the memory is freed and allocated again: nothing but an operation's own operands
        is ever looked up here.
        """
        key = memory, nbytes
        buffer = self._host.pop(key, None)
        if buffer is None:
            if len(self._host) >= self.KEPT:                # the one that was used the longest ago
                self._host.pop(next(iter(self._host))).close()
            buffer = Buffer(self.device, nbytes, memory)
        self._host[key] = buffer
        return buffer

    def _scratch_of(self, name: str, nbytes: int) -> int:
        """The handle of a buffer for an operand of this name, of at least so many bytes."""
        buffer = self._scratch.get(name)
        if buffer is None or buffer.nbytes < nbytes:
            if buffer is not None:
                buffer.close()
            buffer = self._scratch[name] = Buffer(self.device, nbytes)
        return buffer.handle


class _Defaults(threading.local):
    queue: Queue | None = None
    last: Queue | None = None   # the one that the last operation ran on


_defaults = _Defaults()
_spec: str | None = None
_device: Device | None = None
_lock = threading.Lock()


def set_device(spec: str | None) -> None:
    """The device of operations without a `queue`, from here on; None as in Device()."""
    global _spec, _device
    opened = Device(spec)
    with _lock:
        _spec, _device = spec, opened


def default_queue() -> Queue:
    """This thread's queue on the default device, which operations use unless they are given one."""
    global _device
    queue = _defaults.queue
    if queue is None or queue.device is not _device:
        with _lock:
            if _device is None:
                _device = Device(_spec)
            device = _device
        queue = _defaults.queue = Queue(device)
    return queue


def explain(queue: Queue | None = None) -> Explanation:
    """How this thread's last operation ran, or the last on `queue`.

    >>> import numpy, vernier
    >>> c = vernier.gemm(numpy.ones((8, 8), "f4"), numpy.ones((8, 8), "f4"), variant="gemm")
    >>> vernier.explain()["variant"]
    'gemm'
    """
    last = _defaults.last
    return (queue or (last if last is not None and last._open is not None else default_queue())).explain()


def each(values: Any, count: int, name: str) -> Iterator[int]:
    """An int for each of `count` spatial dimensions: one for all, or as many."""
    if isinstance(values, int):
        return iter([values] * count)
    out = [int(v) for v in values]
    if len(out) != count:
        raise InvalidError(f"{name} has {len(out)} values; it needs one, or {count}")
    return iter(out)
