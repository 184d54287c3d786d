"""What a downstream connection is doing, and why it may not be reading: words that the files of this package share."""

from __future__ import annotations

READ_HEAD, READ_BODY, WAIT, TUNNELLING, LINGER, CLOSED = range(6)
"""What the next byte from the client is: of a head; of a body; of the next request (kept, as long as there is an
exchange, or requests that wait for their turn); of a tunnel; unwanted."""

PIPELINED, EXCHANGE, TURN = 1, 2, 4
"""Reasons to stop reading from the client, as bits: enough of the next requests is here; the exchange asked; what was
read already is more than one turn of the loop is for."""

PLAIN, ENCODED, JOINED = range(3)
"""How the content of the response leaves: as it is given; in chunks made here; in the endpoint's chunks."""
