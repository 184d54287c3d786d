"""The program of workers and of their fork server: loads what `worker` needs without collecting garbage.

Nothing that is loaded is garbage, and looking through it once takes a fifth of the time. Who has loaded all of it says
so (`table/collection.configure`).
"""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """See `worker.main`."""
    gc.disable()
    from dataplane import worker

    worker.main()


if __name__ == "__main__":
    main()
    sys.exit(0)
