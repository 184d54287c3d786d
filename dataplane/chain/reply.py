"""`dataplane.reply.Reply`, by the name that steps and their builders know it by. The class lies below the exchange, for
the contract of stages names it, too."""

from dataplane.reply import Reply

__all__ = ["Reply"]
