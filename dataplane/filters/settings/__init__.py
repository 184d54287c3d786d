"""Policies that become values of a plan: the proxy, or a kind of backends, carries them out (`registry`)."""
