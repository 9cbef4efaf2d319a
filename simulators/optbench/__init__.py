"""WirelessOptBench: wireless tasks as execution-state episodes, and what methods make of them (docs/optbench.md)."""
