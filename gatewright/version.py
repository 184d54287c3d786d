"""The version of this product, for both planes.

Written down here and in `pyproject.toml` (`tests/rules/test_manifests.py` compares them): looking for what is installed
loads more modules than all that a proxy says about itself is worth.
"""

from typing import Final

VERSION: Final = "0.1.0"
