"""The proxy as a workload of an Istio mesh: its certificate, and what workers get of it."""
