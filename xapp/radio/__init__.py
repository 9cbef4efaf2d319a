"""The radio formulas of the rules (equations 1, 2 and 4) and the models that the simulated network builds on. Pure."""
