"""The support gate: whether the network has been here often enough for its evidence to be relied on.

Source: *A Verifier Can Leak the Answer*, sections 5.1 to 5.3; design: docs/support-gate.md.
"""
