"""How a command ends: the documented exit codes, and the one exception that carries a message to the user.

Every command returns one of these numbers; scripts may rely on them (`gatewright --help` prints the table).
"""

from __future__ import annotations

OK = 0
CONFIG = 1
USAGE = 2
BIND = 3
DEPENDENCY = 4
INTERRUPTED = 130

MEANINGS: tuple[tuple[int, str], ...] = (
    (OK, "it worked; also a long-running command that ended because of SIGTERM"),
    (CONFIG, "errors in the configuration, or an object did not reach the state that was waited for"),
    (USAGE, "the command line is wrong"),
    (BIND, "an address cannot be listened on; the message says who holds it"),
    (DEPENDENCY, "something that the command needs is absent: a controller that answers, a package, a file or folder"),
    (INTERRUPTED, "stopped by Ctrl-C (SIGINT)"),
)


class Failure(Exception):
    """An expected end of a command: the message for the user (what is wrong, and the cure), and the exit code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
