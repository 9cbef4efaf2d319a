"""Two xApps as they are written in the field: they plan on the last value that they saw, and check nothing."""
