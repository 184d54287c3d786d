"""W3C Trace Context and which requests are traced: pure."""
