"""What the commands of `wirelessops` do; `streams/cli.py` parses the options and calls these."""
