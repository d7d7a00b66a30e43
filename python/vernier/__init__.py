# SPDX-License-Identifier: Apache-2.0
"""Vernier: GEMM, convolution, softmax, attention and cross-entropy on any OpenCL device, over NumPy arrays.

    import numpy, vernier
    a = numpy.random.rand(512, 512).astype("f4")
    c = vernier.gemm(a, a.T, act="gelu")
    print(vernier.explain())

Operations take NumPy arrays of float32, float16, float64 and ml_dtypes.bfloat16 with any strides, what has
__dlpack__ on the host, and vernier.Tensor, which stays on the device.  On CPUs they compute in NumPy's own memory.
Each thread has a queue of its own; vernier.set_device() says on which device.  Errors are exceptions with the
library's own sentence.  After a fork the library cannot be used in the child: see doc/python.md.
"""
from ._arrays import Tensor, empty, tensor
from ._attention import attention, attention_backward
from ._conv import PackedFilter, conv, conv_backward_data, conv_backward_filter, pack_filter
from ._cross_entropy import cross_entropy
from ._device import (Buffer, Device, DeviceInfo, Event, Explanation, Queue, default_queue, devices, explain,
                      set_device)
from ._gemm import gemm
from ._library import (Error, FailedError, InvalidError, NoDeviceError, NoMemoryError, UnsupportedError,
                       library_path, version)
from ._softmax import softmax, softmax_backward

__version__ = version()
__all__ = ["Buffer", "Device", "DeviceInfo", "Error", "Event", "Explanation", "FailedError", "InvalidError",
           "NoDeviceError", "NoMemoryError", "PackedFilter", "Queue", "Tensor", "UnsupportedError", "attention", "attention_backward", "conv", "conv_backward_data",
           "conv_backward_filter", "cross_entropy", "default_queue", "devices", "empty", "explain", "gemm", "library_path",
           "pack_filter", "set_device", "softmax", "softmax_backward", "tensor", "version"]
