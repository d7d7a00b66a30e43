# SPDX-License-Identifier: Apache-2.0
import json

import pytest

import vernier.report

BENCH = {
    "schema": 2,
    "context": {"device": "a device"},
    "benchmarks": [
        {"name": "gemm:2x2x2:f32:nn", "op": "gemm", "device": "opencl:0", "real_time": 2.0, "samples_s": [1.0, 3.0],
         "interval_s": [1.0, 3.0], "roof": {"kind": "FMA", "seconds": 0.5},
         "peers": {"onednn": {"real_time": 4.0, "ratio": 2.0, "samples_s": [4.0]}, "clblast": {"skipped": True}}},
        {"name": "softmax:2x2:f32", "skip_message": "no"},
    ],
    "vernier": {"geomean": {"onednn": 2.0}},
}
GAP = {"schema": 2, "context": {"a": {}, "b": {}}, "benchmarks": [
    {"name": "x", "samples_s": [9.0], "runs": [{"device": "opencl:0", "samples_s": [1.0]},
                                               {"device": "cuda:0", "library": "cublas", "samples_s": [2.0, 3.0]},
                                               {"device": "cuda:0", "skip_message": "no"}]}]}
OLD = {"context": {"device": "a device"}, "benchmarks": [{"name": "x", "real_time": 1.0, "samples": 5}]}


@pytest.fixture
def report(tmp_path):
    def write(whole):
        path = tmp_path / "report.json"
        path.write_text(json.dumps(whole))
        return vernier.report.load(path)
    return write


def test_rows(report):
    r = report(BENCH)
    assert r.context["device"] == "a device" and r.summary["geomean"] == {"onednn": 2.0} and "2 rows" in repr(r)
    assert r.rows[0]["peers.onednn.ratio"] == 2.0 and r.rows[0]["roof.kind"] == "FMA"
    assert r.rows[0]["interval_s"] == (1.0, 3.0) and r.rows[1] == BENCH["benchmarks"][1]


def test_samples(report):
    rows = report(BENCH).sample_rows()
    assert [(x["library"], x["sample"], x["seconds"]) for x in rows] == [("", 0, 1.0), ("", 1, 3.0),
                                                                         ("onednn", 0, 4.0)]


def test_gap(report):
    rows = report(GAP).sample_rows()
    assert [(x["library"], x["device"], x["seconds"]) for x in rows] == [
        ("", "opencl:0", 1.0), ("cublas", "cuda:0", 2.0), ("cublas", "cuda:0", 3.0)]


def test_old(report):
    r = report(OLD)
    assert r.rows == OLD["benchmarks"] and r.sample_rows() == []


@pytest.mark.parametrize("whole", [[], {}, {"benchmarks": 1}, {"schema": 3, "benchmarks": []}])
def test_no_report(report, whole):
    with pytest.raises(ValueError, match="report"):
        report(whole)


def test_frames(report):
    pandas = pytest.importorskip("pandas")
    r = report(BENCH)
    assert r.frame().loc[0, "peers.onednn.ratio"] == 2.0 and len(r.frame()) == 2
    assert r.samples().groupby("library")["seconds"].median().to_dict() == {"": 2.0, "onednn": 4.0}
    assert isinstance(report(OLD).samples(), pandas.DataFrame) and len(report(OLD).samples()) == 0
