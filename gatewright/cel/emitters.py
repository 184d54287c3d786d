"""What makes Python of each kind of node of a typed tree: all emitters in one table."""

from __future__ import annotations

from typing import Final

from gatewright.cel.emit_calls import CALLS
from gatewright.cel.emit_conditions import CONDITIONS
from gatewright.cel.emit_loops import LOOPS
from gatewright.cel.emit_macros import MACROS
from gatewright.cel.emit_operators import OPERATORS
from gatewright.cel.emit_values import VALUES
from gatewright.cel.plan import Emitters

EMITTERS: Final[Emitters] = {**VALUES, **OPERATORS, **CONDITIONS, **CALLS, **LOOPS, **MACROS}
