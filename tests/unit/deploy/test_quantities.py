"""Quantities as Kubernetes writes them."""

from __future__ import annotations

from fractions import Fraction

import pytest

from controlplane.deploy.quantities import quantity

QUANTITIES: list[tuple[object, Fraction | int | None]] = [
    (0, 0),
    (3, 3),
    (-2, -2),
    ("5", 5),
    ("+5", 5),
    ("-5", -5),
    ("1.5", Fraction(3, 2)),
    ("1.", 1),
    (".5", Fraction(1, 2)),
    ("-.5", Fraction(-1, 2)),
    ("100m", Fraction(1, 10)),
    ("7u", Fraction(7, 10**6)),
    ("7n", Fraction(7, 10**9)),
    ("2k", 2000),
    ("2M", 2 * 10**6),
    ("2G", 2 * 10**9),
    ("2T", 2 * 10**12),
    ("2P", 2 * 10**15),
    ("2E", 2 * 10**18),
    ("2Ki", 2 * 2**10),
    ("2Mi", 2 * 2**20),
    ("2Gi", 2 * 2**30),
    ("2Ti", 2 * 2**40),
    ("2Pi", 2 * 2**50),
    ("2Ei", 2 * 2**60),
    ("2e3", 2000),
    ("2E3", 2000),
    ("2e+3", 2000),
    ("2e-3", Fraction(1, 500)),
    ("12e10", 12 * 10**10),
    ("9" * 30, int("9" * 30)),
    ("9" * 31, None),
    ("2e100", None),
    ("2e", None),
    ("2x", None),
    ("2mi", None),
    ("2xy", None),
    ("e3", None),
    (".", None),
    ("", None),
    ("1 ", None),
    ("1.2.3", None),
    ("--1", None),
    (True, None),
    (1.5, None),
    (None, None),
]


@pytest.mark.parametrize(("written", "expected"), QUANTITIES)
def test_a_quantity_is_read(written: object, expected: Fraction | int | None) -> None:
    assert quantity(written) == expected
