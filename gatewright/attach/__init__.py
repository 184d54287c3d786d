"""Which policy acts where, and which wins: docs/attachment.md.

`policies` is the table of all policies. `places` says what a policy may name at each position of traffic and of
backends, `merge` what the policies at one position come to, `outcome` what became of one policy. Used by the data plane
to compile, by the control plane for status, by lint to warn. Pure.
"""
