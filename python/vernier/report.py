# SPDX-License-Identifier: Apache-2.0
"""Reports of `vernier bench`, `gap` and `compare`, from their --json, as rows and as pandas frames.

    import vernier.report
    r = vernier.report.load("report.json")
    r.frame()[["name", "real_time", "peers.onednn.ratio"]]
    r.samples().groupby("name")["seconds"].median()
"""
from __future__ import annotations

import json
import os
from typing import Any, Iterator

__all__ = ["Report", "load"]

SCHEMAS = (None, 2)             # without one: format 1, which has neither samples nor intervals


class Report:
    """A report: `context`, a dict of where it was measured; `rows`, a flat dict for each problem."""

    def __init__(self, whole: dict[str, Any]) -> None:
        if not isinstance(whole, dict) or not isinstance(whole.get("benchmarks"), list):
            raise ValueError("this is no report of vernier: it has no list \"benchmarks\"")
        if whole.get("schema") not in SCHEMAS:
            raise ValueError(f"this report has schema {whole.get('schema')}; this package reads 2, and those without")
        self.context: dict[str, Any] = whole.get("context", {})
        self.summary: dict[str, Any] = whole.get("vernier", {})
        self._benchmarks: list[dict[str, Any]] = whole["benchmarks"]
        self.rows = [dict(_flat(row)) for row in self._benchmarks]

    def __repr__(self) -> str:
        return f"<vernier.report.Report of {len(self.rows)} rows on {self.context.get('device', 'two devices')}>"

    def frame(self) -> Any:
        """A pandas frame with a line for each problem; names of nested members are joined by dots."""
        return _pandas().DataFrame(self.rows)

    def sample_rows(self) -> list[dict[str, Any]]:
        """A dict for each measured time: name, library ("" is Vernier), device, sample, seconds."""
        out = []
        for row in self._benchmarks:
            for library, device, times in _timings(row):
                out += [{"name": row["name"], "library": library, "device": device, "sample": i, "seconds": t}
                        for i, t in enumerate(times)]
        return out

    def samples(self) -> Any:
        """sample_rows() as a pandas frame."""
        return _pandas().DataFrame(self.sample_rows(), columns=["name", "library", "device", "sample", "seconds"])


def _flat(row: dict[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        elif not isinstance(value, list):
            yield before + name, value
        elif all(not isinstance(v, (dict, list)) for v in value):
            yield before + name, tuple(value)


def _timings(row: dict[str, Any]) -> Iterator[tuple[str, str, list[float]]]:
    """Of a row of `gap` its runs, of one of `bench` its own and its peers' samples."""
    runs = [run for run in row.get("runs", []) if "samples_s" in run]
    for run in runs:
        yield run.get("library", ""), run.get("device", ""), run["samples_s"]
    if not runs and "samples_s" in row:
        yield "", row.get("device", ""), row["samples_s"]
    for name, peer in row.get("peers", {}).items():
        if "samples_s" in peer:
            yield name, row.get("device", ""), peer["samples_s"]


def load(path: str | os.PathLike[str]) -> Report:
    """The report in a file that `vernier bench ... --json FILE` wrote; also of `gap` and `compare`."""
    with open(path, encoding="utf-8") as file:
        return Report(json.load(file))


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise ImportError("frames need pandas (pip install pandas); without it there are .rows and "
                          ".sample_rows()") from None
    return pandas
