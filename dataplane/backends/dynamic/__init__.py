"""The backend whose destination each request names (`dynamicForwardProxy`)."""
