"""Words that a reader in a hurry does not look for, what is written instead, and where one is the right word."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple


class Rare(NamedTuple):
    """A word in its forms, as a regular expression, and what is written instead."""

    forms: str
    instead: str


RARE_WORDS: Final[Mapping[str, Rare]] = {
    "room": Rare("rooms?", "package, module; capacity, space, free bytes"),
    "house": Rare("house|household|lamp", "product"),
    "told": Rare("told|tells?|telling", "reports, logs, describes, notifies; distinguishes"),
    "guard": Rare("guards?|guarded|guarding", "security policy, protects, covers"),
    "ours": Rare("ours", "Gatewright's, managed by Gatewright, own"),
    "nobody": Rare("nobody(?:'s)?", "no client, no proxy, no reader: who it is"),
    "whoever": Rare("whoever", "the caller, anyone who, the process that"),
    "heals": Rare("heals?|healed|healing", "recovers"),
    "stands for": Rare("stands? for|stood for|standing for", "replaces, represents"),
    "leads nowhere": Rare("leads? nowhere", "target not found"),
    "not as wished": Rare("not as wished", "when False"),
    "stands still": Rare("stands? still", "hangs"),
    "unasked": Rare("unasked", "unexpectedly, unsolicited"),
    "sure to refuse": Rare("sure to refuse|sure refusal", "always rejected"),
    "spec 1": Rare("spec [123]", "the name of the field"),
}
"""By the name that `words_left.txt` has of it."""

IN_CODE_ALONE: Final = frozenset({"guard"})
"""Pages have many guards of prompts."""

PHRASES: Final[Mapping[str, str]] = {
    r"(?:ai ?)?prompt ?guards?": "a field of `backend.ai`",
    r"(?:webhook|regex|moderation|bedrock|model armor) ?guards?": "messages of the wire, for that field",
    r"guard (?:server|action|builtin|header match|rejection|scope)s?": "messages of the wire, for that field",
    r"guards of (?:prompts|requests|responses)": "what that field has",
    r"dropped[- ]guards?": "a code of lint, which users may have in their scripts",
    r"gatewright guard": "a command",
    r"default\(jwt.sub, ['\"]nobody": "a text in an example",
    r"house[- ]rules": "an object of an example",
    r"(?:has|have|had|makes?|made|making|finds?|no|enough) room|room for": "plain English for capacity",
}
"""Where the word is the right one: these are not looked at. The reason stands beside."""

TERMS: Final[Mapping[str, Mapping[str, str]]] = {
    "gatewright/api/backend/prompt_guard.py": {"guard": "the model of `promptGuard`"},
    "gatewright/api/advice/effects.py": {"guard": "what `promptGuard` does not judge"},
    "gatewright/api/lint/dropped_guards.py": {"guard": "what the code of lint names"},
    "gatewright/api/lower/guard_servers.py": {"guard": "the servers that `promptGuard` names"},
    "gatewright/api/lower/lowering.py": {"guard": "messages of the wire for `promptGuard`"},
    "gatewright/api/lower/to_wire.py": {"guard": "messages of the wire for `promptGuard`"},
    "gatewright/api/schema/names.py": {"guard": "the two fields of `promptGuard`"},
    "controlplane/cli/command_options.py": {"guard": "the options of `gatewright guard`"},
    "controlplane/cli/offline/guard.py": {"guard": "`gatewright guard`, which tries a promptGuard"},
    "controlplane/cli/parser.py": {"guard": "`gatewright guard`"},
    "dataplane/guards/": {"guard": "the package of `promptGuard`"},
    "dataplane/guards/words.py": {"room": "a word that stands beside numbers in texts"},
    "dataplane/backends/llm/": {"guard": "guards of `promptGuard`, run on requests and answers"},
    "dataplane/llm/": {"guard": "guards of `promptGuard`, as policies and texts have them"},
    "dataplane/filters/settings/backend_ai.py": {"guard": "builds `promptGuard`"},
    "dataplane/chain/replies.py": {"guard": "answers of `promptGuard`"},
    "dataplane/telemetry/metric_rows/llm.py": {"guard": "metrics of `promptGuard`"},
}
"""By file or folder: words that are right in all of it."""

_ASIDE: Final = re.compile(rf"\b(?:{'|'.join(PHRASES)})\b", re.IGNORECASE)
_WORDS: Final = {name: re.compile(rf"\b(?:{rare.forms})\b", re.IGNORECASE) for name, rare in RARE_WORDS.items()}
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_")


def words_in(path: str, text: str) -> set[str]:
    """The rare words of a module or page, by their names: in sentences, and as parts of identifiers."""
    allowed = {word for place, words in TERMS.items() if path.startswith(place) for word in words}
    if not path.endswith(".py"):
        allowed |= IN_CODE_ALONE
    plain = _ASIDE.sub(" ", apart(path, text))
    return {name for name, word in _WORDS.items() if name not in allowed and word.search(plain)}


def apart(path: str, text: str) -> str:
    """A text with its identifiers as words, and a sentence of several lines as one; of a page what is no code."""
    if path.endswith(".py"):
        return re.sub(r"\n\s*(?:#\s?)?", " ", _HUMP.sub(" ", text))
    return re.sub(r"```.*?```", "", text, flags=re.DOTALL)
