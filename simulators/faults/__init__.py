"""Faults that wrap what an honest world reports: each with a window, a kind, and harmful and harmless variants."""
