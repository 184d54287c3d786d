"""The formats of conversations by name. Pure."""

from __future__ import annotations

from typing import Final

from dataplane.llm.formats import completions, messages
from dataplane.llm.formats.contract import ClientFormat, ProviderFormat
from dataplane.llm.routes import Format

CLIENTS: Final[dict[Format, ClientFormat]] = {
    Format.COMPLETIONS: completions,
    Format.MESSAGES: messages,
}
PROVIDERS: Final[dict[Format, ProviderFormat]] = {
    Format.COMPLETIONS: completions,
    Format.MESSAGES: messages,
}
