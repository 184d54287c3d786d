"""`python -m controlplane`: the same as `gatewright controller`, for containers."""

from __future__ import annotations

import sys

from controlplane.cli.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["controller", *sys.argv[1:]]))
