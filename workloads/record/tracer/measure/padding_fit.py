#!/usr/bin/env python3
"""Fits the times of ../allocrig_tracer/padding.py to what padding.py measured: padding_fit.py [padding.tsv.gz]

Prints the constants, and how many of the measured decisions they give. Needs numpy and scipy. A time is fitted by its
logarithm, with a loss that a few outliers do not dominate; constants that few products decide stay near START.
"""
import csv
import gzip
import os
import sys

import numpy
from scipy.optimize import least_squares

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, f"{HERE}/../allocrig_tracer")
import padding  # noqa: E402

START = (5.0, 150.0, 2.5)
COPIES = (5.0, 1.3, 0.5, 0.5, 2.0, 3.0)


def products(path, settings):
    """Measured products of the settings: (Product, pads, microseconds of it, of it padded, with even sizes)."""
    with gzip.open(path, "rt") as f:
        for r in csv.DictReader((line for line in f if line[0] != "#"), delimiter="\t"):
            if r["setting"] in settings:
                item = 4 if "32" in r["setting"] else 2
                sizes = [int(r[n]) for n in ("batch", "m", "k", "n")]
                even = [padding.even(s, item) for s in sizes[1:]]
                found = padding.Product(item, r["operator"], *sizes, even, r["layout"], (r["free_left"] == "1", r["free_right"] == "1"))
                yield found, int(r["pads"]), *(float(r[n]) for n in ("time", "padded", "product"))


def fit(name, measured):
    cells = sorted({c for p, *_ in measured for c in (p.cell(), p.padded_cell(), p.cell(16))})
    start = numpy.log([*START * len(cells), *COPIES])

    def constants(x):
        values = [float(f"{v:.3g}") for v in numpy.exp(x)]
        return {c: tuple(values[3 * i : 3 * i + 3]) for i, c in enumerate(cells)}, tuple(values[3 * len(cells) :])

    def residuals(x):
        values = numpy.exp(x)
        rates, copies = {c: values[3 * i : 3 * i + 3] for i, c in enumerate(cells)}, values[3 * len(cells) :]
        out = []
        for p, _, time, padded, product in measured:
            out.append(numpy.log(p.time(rates[p.cell()]) / time))
            out.append(numpy.log(p.padded_time(rates[p.padded_cell()], copies) / padded))
            out.append(0.5 * numpy.log(p.time(rates[p.cell(16)], True) / product))
        return numpy.concatenate([out, 0.02 * (x - start)])

    rates, copies = constants(least_squares(residuals, start, loss="soft_l1", f_scale=0.1).x)
    print(f"# {name}")
    for cell, values in rates.items():
        print(f"    {cell}: {values},")
    print("   ", copies)
    for title, least in (("all", 0), ("of 16 MB and more", 16e6)):
        chosen = [(p, pads, time / (1.1 * padded)) for p, pads, time, padded, _ in measured if p.moved(p.sizes) >= least]
        good = [bool(pads) == p.pays(rates, copies) for p, pads, _ in chosen]
        clear = [g for g, (_, _, edge) in zip(good, chosen) if not 0.9 < edge < 1 / 0.9]
        print(f"# {title}: {sum(good)} of {len(good)} decisions, {sum(clear)} of {len(clear)} that are a tenth from the border")


if __name__ == "__main__":
    source = sys.argv[1] if len(sys.argv) > 1 else f"{HERE}/padding.tsv.gz"
    for item, settings in ((4, ("tf32",)), (2, ("bf16", "f16"))):
        fit(f"{item} bytes", list(products(source, settings)))
