"""Read by Python at its start, in processes that tests start while a mutant is planted (`mutation/planted`)."""

import importlib.util
from pathlib import Path

_spec = importlib.util.spec_from_file_location("_planted", Path(__file__).parents[1] / "planted.py")
assert _spec is not None and _spec.loader is not None
_planted = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_planted)
_planted.from_environment()
