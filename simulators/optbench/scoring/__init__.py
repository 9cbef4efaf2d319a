"""The evaluator: task scores, plan feasibility, records, outcomes, metrics, bootstrap (paper, table II).

Reads bundles and the sealed part of cases, and nothing of the guard, so that no fault of the guard can hide here.
"""
