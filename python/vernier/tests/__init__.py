# SPDX-License-Identifier: Apache-2.0
"""pytest --pyargs vernier: operations beside NumPy in double; handles, errors, reports."""
