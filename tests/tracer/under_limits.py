#!/usr/bin/env python3
"""Compares predicted runs under limits with the card's, of which a limit may have several.

    under_limits.py PREDICTED.tsv          # what predict.py wrote as OUT_limits.tsv

limits.tsv has one row a run; rows of one program, setting and limit are runs of the same. Where a process finds free
addresses differs from run to run, and near a limit the number of retries with it. So a prediction agrees with a share
of the runs, and each limit counts once: a whole number of limits only where all runs of each are equal.

    outcomes           the mean share of the runs of a limit whose outcome is the predicted one
    retries            the same for the number of retries of the runs that finish
    one of the card's  limits at which the predicted number is that of at least one run
    another run        what a run of the card would have as the prediction of the others, where there are several
"""
import collections
import csv
import sys


def limited(rows):
    """Runs by (program, setting, limit): (outcome, retries)."""
    runs = collections.defaultdict(list)
    for r in rows:
        if r["outcome"] != "smallest":
            runs[r["program"], r["setting"], int(r["limit"])].append((r["outcome"], int(r["retries"])))
    return runs


def bounds(rows):
    """(low, high): the largest limit of one setting with which no run finishes, the smallest with which all do."""
    outcomes = collections.defaultdict(set)
    for r in rows:
        outcomes[int(r["limit"])].add(r["outcome"])
    return (max((k for k, v in outcomes.items() if v == {"out of memory"}), default=None),
            min((k for k, v in outcomes.items() if v <= {"finished", "smallest"}), default=None))


class Score:
    """Sums over limits."""

    def __init__(self):
        self.limits = self.runs = self.with_retries = self.finished = self.own = self.repeated = 0
        self.outcomes = self.retries = self.another = 0.0
        self.varied = []

    def add(self, key, runs, outcome, retries):
        """Runs of one limit and what was predicted. Returns a line for a miss, else an empty one."""
        agree = sum(o == outcome for o, _ in runs)
        numbers = collections.Counter(n for o, n in runs if o == "finished")
        count = sum(numbers.values())
        equal = numbers[retries] if outcome == "finished" else 0
        self.limits += 1
        self.runs += len(runs)
        self.outcomes += agree / len(runs)
        if count:
            self.with_retries += 1
            self.finished += count
            self.retries += equal / count
            self.own += equal > 0
        if count > 1:
            self.repeated += 1
            self.another += sum(n * (n - 1) for n in numbers.values()) / (count * (count - 1))
        if len(set(runs)) > 1 and (len(numbers) > 1 or agree not in (0, len(runs))):
            self.varied.append(key)
        if agree == len(runs) and equal == count:
            return ""
        said = collections.Counter(f"{o}, {n} retries" for o, n in runs)
        return f"limit {key[-1] >> 20} MiB {key[-2]}: recorded " + "; ".join(
            s + (f" ({n} of {len(runs)} runs)" if len(runs) > 1 else "") for s, n in said.most_common()) + (
            f"; traced {outcome}, {retries} retries")

    def __iadd__(self, other):
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)
        return self

    def short(self):
        return f" {self.outcomes:.3g}/{self.limits} {self.retries:.3g}/{self.with_retries}"

    def lines(self):
        yield f"outcomes under a limit: {self.outcomes:.4g} of {self.limits}"
        yield f"numbers of retries: {self.retries:.4g} of {self.with_retries}"
        if not self.repeated:
            return
        yield f"    runs: {self.runs}, of which {self.finished} finish; limits with several that finish: {self.repeated}"
        yield f"    one of the card's own numbers of retries: {self.own} of {self.with_retries}"
        yield f"    another run of the card has the same number: {self.another:.4g} of {self.repeated}"
        for program, setting, limit in self.varied:
            yield f"    runs differ: {program} {setting}, limit {limit >> 20} MiB"


def table(path):
    with open(path) as f:
        return list(csv.DictReader((line for line in f if line[0] != "#"), delimiter="\t"))


def main():
    card, score = limited(table(__file__.rsplit("/", 1)[0] + "/limits.tsv")), Score()
    with open(sys.argv[1]) as f:
        for line in f:
            program, setting, limit, outcome, retries = line.rstrip("\n").split("\t")[:5]
            key = program, setting, int(limit)
            miss = score.add(key, card[key], outcome, int(retries)) if key in card else f"{limit} {setting}: no run"
            if miss:
                print(program, miss)
    print("\n".join(score.lines()))


if __name__ == "__main__":
    main()
