"""Credentials toward backends: `backend.auth`."""

from dataplane.filters.settings.backend_auth.policy import build, secrets

__all__ = ["build", "secrets"]
