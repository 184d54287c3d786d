"""`python -m controlplane`: the same as `gatewright controller`, for containers."""

from __future__ import annotations

import sys

from controlplane.cli import __main__ as cli


def main() -> int:
    """See `cli.main`."""
    return cli.main(["controller", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
