# SPDX-License-Identifier: Apache-2.0
"""conv() and its gradients: convolutions of one to three spatial dimensions, without flipping the filter."""
from __future__ import annotations

from ctypes import byref, c_void_p, sizeof
from typing import Any, Sequence

from ._arrays import (Call, Tensor, activation_code, choice_code, dtype_of, math_code, result, variant_name)
from ._device import Handle, Queue, each
from ._library import CConvOptions, InvalidError, check, lib

LAYOUTS = ("NCHW", "NHWC")


def _inner(x: Any, layout: int) -> Any:
    """The operand with its channels behind its first dimension, which is where the library has them."""
    if x is None or not layout or x.ndim < 3:
        return x
    x, _ = dtype_of(x, "out")               # of an array of pyopencl its tensor
    order = (0, x.ndim - 1, *range(1, x.ndim - 1))
    return x.transpose(*order)          # of NumPy's arrays and of tensors: without a copy


def _outer(shape: Sequence[int], layout: int) -> tuple[int, ...]:
    return (shape[0], *shape[2:], shape[1]) if layout else tuple(shape)


class _Shape:
    """What the options say of a convolution with so many spatial dimensions."""

    def __init__(self, spatial: int, stride: Any, padding: Any, dilation: Any, groups: int) -> None:
        if not 1 <= spatial <= 3:
            raise InvalidError(f"x has {spatial + 2} dimensions; it needs 3 to 5: images, channels, and 1 to 3 "
                               "spatial ones")
        self.groups = groups
        self.stride = tuple(each(stride, spatial, "stride"))
        self.dilation = tuple(each(dilation, spatial, "dilation"))
        if isinstance(padding, int) or all(isinstance(p, int) for p in padding):
            self.before = self.after = tuple(each(padding, spatial, "padding"))
        else:
            pairs = [tuple(p) for p in padding]
            if len(pairs) != spatial or any(len(p) != 2 for p in pairs):
                raise InvalidError(f"padding is {padding!r}; it needs a number, {spatial} numbers, or {spatial} "
                                   "pairs (before, after)")
            self.before, self.after = tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)

    def outputs(self, image: Sequence[int], filters: Sequence[int]) -> list[int]:
        """The spatial extents of y."""
        sizes = zip(image, filters, self.stride, self.dilation, self.before, self.after)
        return [max((n + p + q - d * (r - 1) - 1) // max(s, 1) + 1, 0) for n, r, s, d, p, q in sizes]

    def options(self, act: str | None, math: str | None, variant: str | None) -> CConvOptions:
        o = CConvOptions(groups=self.groups, math=math_code(math), activation=activation_code(act),
                         size=sizeof(CConvOptions), variant=variant_name(variant))
        for i, v in enumerate(zip(self.stride, self.dilation, self.before, self.after)):
            o.stride[i], o.dilation[i], o.pad_before[i], o.pad_after[i] = v
        return o


class PackedFilter(Handle):
    """A filter in the layout that a kernel reads, from pack_filter(); it keeps the tensor that it was made of."""

    _noun, _instead = "packed filter", "pack it there"

    def __init__(self, w: Tensor, opened: c_void_p) -> None:
        super().__init__(opened, lib.vn_pack_close)
        self.w = w

    @property
    def bytes(self) -> int:
        """Device memory that it takes; 0 where the filter is best read as it lies."""
        return int(lib.vn_pack_bytes(self.handle))


def pack_filter(x: Any, w: Tensor, out: Any, *, backward: bool = False, stride: Any = 1, padding: Any = 0,
                dilation: Any = 1, groups: int = 1, layout: str = "NCHW", math: str | None = None,
                variant: str | None = None, queue: Queue | None = None) -> PackedFilter:
    """Packs w for calls like conv(x, w, out, ...) or, backward, conv_backward_data(x, w, out, ...).

    These take it as packed=, with w itself, a vernier.Tensor that is not written to.  x and out are of such a call;
    other images may follow.

    >>> import numpy as np, vernier
    >>> x, w, y = (vernier.tensor(np.ones(shape, np.float32)) for shape in ((2, 8, 6, 6), (40, 8, 3, 3), (2, 40, 4, 4)))
    >>> with vernier.pack_filter(x, w, y) as packed:
    ...     float(vernier.conv(x, w, y, packed=packed).numpy()[1, 39, 3, 3])
    72.0
    """
    if not isinstance(w, Tensor):
        raise TypeError(f"w is a {type(w).__name__}; it needs a vernier.Tensor, which keeps its buffer")
    n = choice_code(layout, LAYOUTS, "layout")
    call, opened = Call(queue, x, w, out), c_void_p()
    options = _Shape(w.ndim - 2, stride, padding, dilation, groups).options(None, math, variant)
    image, made = call.input(_inner(x, n), "x"), call.input(_inner(out, n), "out")      # neither is written
    images = (made, image) if backward else (image, made)
    check(lib.vn_conv_pack_open(byref(opened), call.queue.handle, int(backward), images[0],
                                call.input(_inner(w, n), "w"), images[1], byref(options)))
    call.finish()
    return PackedFilter(w, opened)


def _run(function: Any, names: Sequence[str], x: Any, w: Any, out: Any, made: Any, shape: _Shape, layout: int,
         alpha: float, beta: float, bias: Any, residual: Any, act: str | None, math: str | None, variant: str | None,
         dtype: Any, queue: Queue | None, packed: PackedFilter | None = None) -> Any:
    call = Call(queue, x, w, out)
    if out is None:
        if beta and residual is None:
            raise InvalidError(f"beta is {beta}, and out and residual are None; it needs what beta multiplies")
        out = result(call, x, _outer(made, layout), dtype or x.dtype)
    options = shape.options(act, math, variant)
    options.packed_w = packed.handle if packed else None
    for name, it in (("bias", bias), ("residual", residual)):
        if it is not None:
            it, _ = dtype_of(it, name)
            setattr(options, name, call.input(_inner(it, layout), name))
    check(function(call.queue.handle, alpha, call.input(_inner(x, layout), names[0]),
                   call.input(_inner(w, layout), names[1]), beta,
                   call.output(_inner(out, layout), names[2], beta != 0 and residual is None), byref(options)))
    call.finish()
    return out


def conv(x: Any, w: Any, out: Any = None, *, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
         layout: str = "NCHW", alpha: float = 1.0, beta: float = 0.0, bias: Any = None, residual: Any = None,
         act: str | None = None, dtype: Any = None, math: str | None = None, variant: str | None = None,
         packed: PackedFilter | None = None, queue: Queue | None = None) -> Any:
    """out := act(alpha conv(x, w) + beta residual + bias)

    x         (N, C, spatial...), with one to three spatial dimensions; dtypes as of gemm()
    w         (K, C / groups, spatial...)
    out       (N, K, spatial...), made if None; extents floor((in + pads - dilation (filter - 1) - 1) / stride) + 1
    layout    "NCHW" as above; "NHWC": channels are the last dimension of x, w and out, as in (N, H, W, C)
    stride, dilation   a number, or one for each spatial dimension
    padding   zeros around x: a number, one for each spatial dimension, or pairs (before, after)
    bias      K elements, or what broadcasts to out
    residual  what beta multiplies, in place of out; broadcasts as the bias does
    packed    w as pack_filter() packed it; w is given, too
    act, dtype, math, variant, queue, and what is raised: as of gemm()

    >>> import numpy as np, vernier
    >>> x = np.arange(5, dtype=np.float32).reshape(1, 1, 5)
    >>> vernier.conv(x, np.ones((1, 1, 3), np.float32), padding=1).tolist()
    [[[1.0, 3.0, 6.0, 9.0, 7.0]]]
    """
    n = choice_code(layout, LAYOUTS, "layout")
    x, _ = dtype_of(x, "x")
    w, _ = dtype_of(w, "w")
    shape = _Shape(x.ndim - 2, stride, padding, dilation, groups)
    made = None
    if out is None:
        if x.ndim != w.ndim:
            raise InvalidError(f"x has {x.ndim} dimensions and w has {w.ndim}; they need as many")
        xs, ws = _inner(x, n).shape, _inner(w, n).shape
        made = (xs[0], ws[0], *shape.outputs(xs[2:], ws[2:]))
    return _run(lib.vn_conv_forward, ("x", "w", "out"), x, w, out, made, shape, n, alpha, beta, bias, residual, act,
                math, variant, dtype, queue, packed)


def conv_backward_data(dy: Any, w: Any, out: Any, *, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
                       groups: int = 1, layout: str = "NCHW", alpha: float = 1.0, beta: float = 0.0,
                       bias: Any = None, residual: Any = None, act: str | None = None, math: str | None = None,
                       variant: str | None = None, packed: PackedFilter | None = None,
                       queue: Queue | None = None) -> Any:
    """out := act(alpha conv^T(dy, w) + beta residual + bias): the gradient of x, or a transposed convolution.

    dy (N, K, spatial...), w (K, C / groups, spatial...), out (N, C, spatial...), whose extents several strides
    could lead to, so that it is given.  The rest as of conv().

    >>> import numpy as np, vernier
    >>> dx = np.empty((1, 1, 4), np.float32)
    >>> vernier.conv_backward_data(np.ones((1, 1, 2), np.float32), np.ones((1, 1, 2), np.float32), dx,
    ...                            stride=2).tolist()
    [[[1.0, 1.0, 1.0, 1.0]]]
    """
    n = choice_code(layout, LAYOUTS, "layout")
    dy, _ = dtype_of(dy, "dy")
    w, _ = dtype_of(w, "w")
    shape = _Shape(dy.ndim - 2, stride, padding, dilation, groups)
    return _run(lib.vn_conv_backward_data, ("dy", "w", "out"), dy, w, out, None, shape, n, alpha, beta, bias,
                residual, act, math, variant, None, queue, packed)


def conv_backward_filter(x: Any, dy: Any, out: Any, *, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
                         groups: int = 1, layout: str = "NCHW", alpha: float = 1.0, beta: float = 0.0,
                         math: str | None = None, variant: str | None = None, queue: Queue | None = None) -> Any:
    """out := alpha (gradient of w) + beta out; with beta 1 gradients accumulate, in float32 where out has that.

    x (N, C, spatial...), dy (N, K, spatial...), out (K, C / groups, spatial...).  The rest as of conv().

    >>> import numpy as np, vernier
    >>> x = np.arange(4, dtype=np.float32).reshape(1, 1, 4)
    >>> dw = np.empty((1, 1, 2), np.float32)
    >>> vernier.conv_backward_filter(x, np.ones((1, 1, 3), np.float32), dw).tolist()
    [[[3.0, 6.0]]]
    """
    n = choice_code(layout, LAYOUTS, "layout")
    x, _ = dtype_of(x, "x")
    dy, _ = dtype_of(dy, "dy")
    shape = _Shape(x.ndim - 2, stride, padding, dilation, groups)
    return _run(lib.vn_conv_backward_filter, ("x", "dy", "out"), x, dy, out, None, shape, n, alpha, beta, None, None,
                None, math, variant, None, queue)
