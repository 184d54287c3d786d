"""Which policy acts where, and which wins (spec 1, Attachment and merge rules; decisions, Precedence).

Used by the data plane to compile, by the control plane to say what became of a policy, by lint to warn. Pure.
"""
