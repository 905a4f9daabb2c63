"""The exit codes that are none of a result."""

INTERRUPTED = 130
