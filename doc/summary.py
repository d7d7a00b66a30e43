#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""summary.py REPORT.csv FIGURE: the summary figure of a report of vernier gap, from its CSV alone."""
import csv, statistics, sys
from collections import defaultdict
import matplotlib.pyplot as plt

runs = defaultdict(dict)            # (row, device, library, same, best) -> {(process, sample): line}
with open(sys.argv[1], newline="") as file:
    for line in csv.DictReader(file):
        key = line["name"], line["device"], line["library"], line["same"], line["best"]
        runs[key][line["process"], line["sample"]] = line

def run(name, device, library="", **role):
    """The samples of one contender of a row, by process and round."""
    return next((lines for (n, d, l, same, best), lines in runs.items() if (n, d, l) == (name, device, library)
                 and role.items() <= {"same": same, "best": best}.items()), {})

def median(figures):
    """Of {(process, sample): figure}, the median of the processes' medians."""
    processes = defaultdict(list)
    for (process, _), figure in figures.items():
        processes[process].append(figure)
    return statistics.median(map(statistics.median, processes.values())) if processes else None

def ratio(one, two, column="seconds"):
    """That of the ratios of samples that were taken in one round."""
    return median({i: float(one[i][column]) / float(two[i]["seconds"]) for i in one.keys() & two.keys()})


panels = {"Toolchain gap": defaultdict(list), "Library gap": defaultdict(list), "Share of the roof": defaultdict(list)}
for name, device, library, same, best in list(runs):
    line = next(iter(runs[name, device, library, same, best].values()))
    group, second = f"{line['op']} {line['type']}", " by FMA" if line["as"] == "FMA" else ""
    ours = run(name, "1", best="1")
    if library:
        gap = ratio(ours, run(name, device, library), "wall_seconds" if line["clock"] == "wall" else "seconds")
        if line["like"] == "0":         # other instructions, or another precision
            engines = next(iter(ours.values()))["engine"], line["engine"]
            group, library = group + " as chosen", library + " (%s against %s)" % engines
        panels["Library gap"][f"{group} / {library}"].append(gap)
    elif device == "1" and same == "1":
        panels["Toolchain gap"][group + second].append(ratio(run(name, "1", same="1"), run(name, "2", same="1")))
    if not library and device == "1" and best == "1":
        panels["Share of the roof"][group + second].append(
            float(line["roof_seconds"]) / median({i: float(sample["seconds"]) for i, sample in ours.items()}))

heights = [len(groups) or 1 for groups in panels.values()]
figure, axes = plt.subplots(3, 1, figsize=(8, 3 + 0.5 * sum(heights)), height_ratios=heights, layout="constrained")
for axis, (title, groups) in zip(axes, panels.items()):
    groups = {name: [v for v in values if v] for name, values in groups.items() if any(values)}
    for y, values in enumerate(groups.values()):
        axis.plot(values, [y + (0.5 + 0.618034 * i) % 1 * 0.5 - 0.25 for i in range(len(values))], "o", ms=3)
    if groups:
        axis.boxplot(list(groups.values()), positions=range(len(groups)), vert=False, whis=0, showfliers=False,
                     showcaps=False)
    axis.set(title=title, xscale="log", ylim=(len(groups) - 0.5, -0.5))
    axis.set_yticks(range(len(groups)), [f"{g}\n{statistics.median(v):.3g}, {len(v)} rows" for g, v in groups.items()])
    axis.axvline(1, color="grey")
figure.savefig(sys.argv[2])
