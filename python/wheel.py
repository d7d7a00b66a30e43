# SPDX-License-Identifier: Apache-2.0
"""wheel.py: makes a wheel of the package, the built library and the command; `make wheel` runs it.

    python3 wheel.py --version 0.1.0 --library FILE [--command FILE] [--suites FILE...] [--licenses FILE...] FOLDER

It needs nothing but Python.  The same inputs give the same bytes.
"""
import argparse
import base64
import hashlib
import sysconfig
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent

METADATA = """Metadata-Version: 2.1
Name: vernier
Version: {version}
Summary: GEMM, convolution and softmax on any OpenCL device, over NumPy arrays
License: Apache-2.0
Requires-Python: >=3.9
Requires-Dist: numpy>=1.22
Requires-Dist: ml_dtypes; extra == "bf16"
Requires-Dist: pandas; extra == "frames"
Requires-Dist: pytest; extra == "test"
Provides-Extra: bf16
Provides-Extra: frames
Provides-Extra: test
Description-Content-Type: text/markdown

{description}"""

WHEEL = """Wheel-Version: 1.0
Generator: vernier
Root-Is-Purelib: false
Tag: {tag}
"""

ENTRY_POINTS = """[console_scripts]
vernier = vernier.__main__:main
"""


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder", type=Path)
    p.add_argument("--version", required=True)
    p.add_argument("--library", type=Path, required=True)
    p.add_argument("--command", type=Path)
    p.add_argument("--suites", type=Path, nargs="*", default=[])
    p.add_argument("--licenses", type=Path, nargs="*", default=[])
    p.add_argument("--description", type=Path, required=True)
    return p.parse_args()


def contents(a, tag):
    """(path in the wheel, bytes, whether it can be executed)"""
    package = HERE / "vernier"
    for path in sorted(package.rglob("*")):
        if path.suffix in (".py", ".typed") and "_installed" not in path.parts:
            yield path.relative_to(HERE).as_posix(), path.read_bytes(), False
    yield "vernier/_installed/libvernier.so.0", a.library.read_bytes(), True
    if a.command:
        yield "vernier/_installed/vernier", a.command.read_bytes(), True
    for path in sorted(a.suites):
        yield f"vernier/_installed/suites/{path.name}", path.read_bytes(), False
    info = f"vernier-{a.version}.dist-info"
    description = a.description.read_text(encoding="utf-8")
    yield f"{info}/METADATA", METADATA.format(version=a.version, description=description).encode(), False
    yield f"{info}/WHEEL", WHEEL.format(tag=tag).encode(), False
    yield f"{info}/entry_points.txt", ENTRY_POINTS.encode(), False
    for path in a.licenses:
        name = path.name if path.name == "LICENSE" else f"{path.parent.name}-{path.name}"
        yield f"{info}/licenses/{name}", path.read_bytes(), False


def main():
    a = arguments()
    tag = "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")
    out = a.folder / f"vernier-{a.version}-{tag}.whl"
    record = []
    a.folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as wheel:
        def add(name, data, runs=False):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100755 if runs else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)

        for name, data, runs in contents(a, tag):
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}")
            add(name, data, runs)
        name = f"vernier-{a.version}.dist-info/RECORD"
        add(name, "\n".join([*record, f"{name},,", ""]).encode())
    print(out)


if __name__ == "__main__":
    main()
