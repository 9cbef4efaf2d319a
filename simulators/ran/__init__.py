"""A simulated radio access network that stays honest: physics, scheduling, reports, and an actuator for decisions.

Faults never change it; they wrap what it reports (`simulators/faults`).
"""
