"""`python -m tests.outside.gateway_api.write` writes `verdicts.txt` anew, after an upgrade of the modules or a change
of ours. Read the difference: each line of it is a user's file that is judged otherwise than before."""

from __future__ import annotations

from tests.outside.gateway_api.table import TABLE, found, text

if __name__ == "__main__":
    TABLE.write_text(text(found()))
