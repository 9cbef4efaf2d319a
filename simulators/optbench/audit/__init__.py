"""The audit of the benchmark: that only evidence tells episodes apart, and that no method can reach the answers."""
