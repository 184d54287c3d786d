"""The variables that expressions read: declared once, for checking, planning, documentation and trying out.

Both planes read this package: the control plane checks with it, workers offer what it names. It knows the words of the
gateway, which `gatewright.cel` does not, and nothing of models, wire or requests.
"""
