"""What proxies answer to states, from a session's ACK or NACK to conditions: `news` has the way in one drawing.

`nacks` reads refusals, `fleet` keeps who holds and refuses what, `shared` is what controllers report to each other,
`verdicts` what it comes to for conditions, and `news` hands it to the program.
"""
