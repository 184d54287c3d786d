"""Play the corpus against any gateway: `python -m tests.raw.score HOST:PORT ORIGIN_PORT [NAME...]`.

The gateway at HOST:PORT must forward everything to 127.0.0.1:ORIGIN_PORT, where the recording origin listens, and
answer paths under /away itself with a 302. Prints one line per failed case and the total.
"""

from __future__ import annotations

import sys

from tests.raw.corpus import CASES
from tests.raw.judge import play
from tests.raw.origin import Origin


def main(arguments: list[str]) -> int:
    host, _, port = arguments[0].rpartition(":")
    names = arguments[2:]
    cases = [c for c in CASES if not names or any(c.name.startswith(n) for n in names)]
    failed = 0
    with Origin(port=int(arguments[1])) as origin:
        for case in cases:
            problems = play(case, (host, int(port)), origin)
            if problems:
                failed += 1
                print(f"{case.name} ({case.rfc}): {'; '.join(problems)}")
    print(f"{len(cases) - failed} right, {failed} wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
