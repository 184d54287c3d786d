"""What a worker reports to collectors, in batches beside the traffic (OTLP)."""
