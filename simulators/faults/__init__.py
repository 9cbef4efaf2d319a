"""Faults that wrap what an honest world reports; each has an end, a kind, and harmless variants as well as harmful ones."""
