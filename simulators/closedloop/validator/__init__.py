"""The independent validator: 56 checks of what a run saved, by code that shares none with the code that saved it.

It imports nothing of this project outside itself, generates no trajectory, and says nothing of the claims: all checks
passing means that the protocol was EXECUTED. Design: docs/study.md; the checks: docs/study-validation.md.
"""
