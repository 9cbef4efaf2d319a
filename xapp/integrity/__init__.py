"""Typed integrity (eq. 6): one check a file, in the order of section 3, and the monitor that runs them."""
