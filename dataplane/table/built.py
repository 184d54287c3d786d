"""One policy, made by the builder of its row: what it came to, or why it refuses what it covers.

`intern` merges these and makes chains of them. Nothing here knows where a policy is attached.
"""

from __future__ import annotations

import logging
from typing import Any

from google.protobuf.message import Message

from dataplane.chain.filter import EndHook, Env, Filter, Refused, Row, as_written
from dataplane.chain.replies import made

log = logging.getLogger("dataplane.table")


class Built:
    """The filter of a step (None: it does nothing), or the value of a setting."""

    __slots__ = ("hides", "index", "made", "policy", "refused", "row")

    def __init__(
        self, index: int, row: Row, made: Any, refused: str = "", policy: str = "", hides: EndHook | None = None
    ) -> None:
        self.index = index
        """Its place in the registry."""
        self.row = row
        self.made = made
        self.refused = refused
        """Not "": requests that it covers are answered with 503, and `made` is None."""
        self.policy = policy
        """`kind namespace/name` of the object that has it; of a rule's own "". The log names it beside `refused`."""
        self.hides = hides
        """Where it is refused: what keeps its credentials out of the log (`Row.hides`)."""

    @property
    def why(self) -> str:
        """For the log of requests: whose it is, and what is wrong, under the name that its author knows."""
        return f"{self.policy} {self.refused.replace(self.row.name, as_written(self.row.name), 1)}".lstrip()

    def __repr__(self) -> str:
        return f"Built({self.row.name}{': ' + self.refused if self.refused else ''})"


def build(row: Row, config: Message, env: Env) -> Any:
    """What the builder of a row makes of a policy: a filter or None, of a setting its value. Raises `Refused`.

    A builder with a bug must cost the proxy one policy, not the process: that is refused as well, and logged in full.
    The refusal, which status shows, has the error's type alone: its text may repeat a secret.
    """
    try:
        return row.build(config, env)
    except Refused as error:
        raise Refused(f"{row.name}: {error}") from None
    except Exception as error:
        log.exception("building %s failed", row.name)
        raise Refused(f"{row.name}: internal error: {type(error).__name__}; the proxy's log says more") from error


def steps_of(row: Row, built: list[Built]) -> list[Filter]:
    """The steps of the policies of one kind that are in effect, the least specific first. None of them is refused."""
    filters = [each.made for each in built if each.made is not None]
    return [row.combine(filters)] if row.combine is not None and len(filters) > 1 else filters


def refusing(name: str, why: str, hides: EndHook | None = None) -> Filter:
    """The step in place of a policy that cannot be applied: nothing that it covers is served without it. `hides`:
    of `Built`."""
    reply = made("PolicyUnusable", why)
    return Filter(name, request=lambda x: reply, end=hides)
