"""Credentials that the gateway presents to backends (`backend.auth`): where they are written, how requests are signed,
how tokens are had and kept. Finishers of the last mile (`upstream/outgoing`) made of them are in `finishers`.
"""
