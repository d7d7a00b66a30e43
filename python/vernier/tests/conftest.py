# SPDX-License-Identifier: Apache-2.0
"""What the tests share: the device, arrays of small integers, and where operands lie."""
import numpy as np
import pytest

import vernier


def pytest_collection_modifyitems(items):
    """One kernel after the other: what a file builds, its later tests find."""
    try:
        vernier.default_queue()
    except vernier.NoDeviceError as why:
        for item in items:
            item.add_marker(pytest.mark.skip(reason=str(why)))


@pytest.fixture
def on_copies(monkeypatch):
    """As on a device with memory of its own: operands are written to it, results are read."""
    monkeypatch.setattr(vernier.default_queue().device, "_shares_host", False)


@pytest.fixture
def random():
    return np.random.default_rng(17)
