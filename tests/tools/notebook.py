# SPDX-License-Identifier: Apache-2.0
"""notebook.py NOTEBOOK [FOLDER]: runs its cells in order, without Jupyter; figures go to FOLDER."""
import json
import sys

import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt

with open(sys.argv[1], encoding="utf-8") as file:
    cells = json.load(file)["cells"]
names = {}
ran = 0
for cell in cells:
    if cell["cell_type"] == "code":
        assert not cell["outputs"], "a notebook is stored without outputs"
        exec(compile("".join(cell["source"]), f"cell {ran + 1}", "exec"), names)
        ran += 1
figures = plt.get_fignums()
for n in figures if len(sys.argv) > 2 else []:
    plt.figure(n).savefig(f"{sys.argv[2]}/figure{n}.png")
print(f"{ran} cells, {len(figures)} figures")
assert ran >= 4 and len(figures) >= 3
