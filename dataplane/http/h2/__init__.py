"""HTTP/2 (RFC 9113) as a pure codec over an HPACK library. `connection` has the contract.

| module | what is in it |
| --- | --- |
| `connection` | the laws, and `Connection`, which the carriers use |
| `events` | what `receive` reports |
| `settings`, `errors` | what is announced and allowed; codes and failures |
| `sending` | the outgoing half of `Connection`, and the state that both have |
| `incoming_heads`, `control_frames`, `receiving` | the incoming half, each a subclass of the one before |
| `rules`, `lines` | header blocks: fields to a checked head, a block to fields |
| `hpack` | the library, and the survey that stands before it |
| `states`, `streams` | the table of RFC 9113 5.1; one stream |
| `budget` | limits on what a peer may make us do for nothing |
| `frames` | numbers and structs of the wire |
"""
