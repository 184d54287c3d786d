"""Interleaved rounds (A B C, B C A, ...) and what is read from them: medians, and ratios of the same round.

The machine's speed moves by a quarter within minutes; two figures of one round share it, so their ratio is worth more
than either.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from benchmarks.load import Sample

Measure = Callable[[str], Sample]


@dataclass(slots=True)
class Rounds:
    """The samples of one case: name of the proxy -> one sample per round."""

    samples: dict[str, list[Sample]] = field(default_factory=dict)

    def median(self, name: str, measured: str) -> float:
        return float(statistics.median(getattr(sample, measured) for sample in self.samples[name]))

    def ratios(self, peer: str, product: str, measured: str) -> list[float]:
        """`peer / product`, round by round."""
        pairs = zip(self.samples[peer], self.samples[product], strict=True)
        return [getattr(p, measured) / getattr(q, measured) for p, q in pairs]

    def noise(self) -> float:
        """The most that anything else used in a round, in cores."""
        return max(sample.foreign for samples in self.samples.values() for sample in samples)


def interleave(names: Sequence[str], measure: Measure, count: int, tell: Callable[[str], None]) -> Rounds:
    """`count` rounds over all names, each beginning with another one."""
    rounds = Rounds({name: [] for name in names})
    for number in range(count):
        shift = number % len(names)
        for name in (*names[shift:], *names[:shift]):
            sample = measure(name)
            rounds.samples[name].append(sample)
        tell(f"round {number + 1} of {count}")
    return rounds
