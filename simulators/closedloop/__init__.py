"""The verifier study: a closed loop that spends PRB credit, its faults, and a verifier that must not leak the answer.

Source: *A Verifier Can Leak the Answer*; design: docs/study.md.
"""
