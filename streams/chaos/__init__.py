"""The chaos harness: load on a real Kafka, workers and brokers killed under it, and a checker that reads what is left.

`history` holds what was done and seen; `checker`, `stale` and `recovery` are pure judges of it, kept apart from the
engine on purpose; `world`, `load`, `actuator` are the network's side; `workers` and `nemesis` break things; `fuzz`
sends what no one should; `campaign` runs it all, `report` prints it. `docs/chaos.md` says what each law means.
"""
