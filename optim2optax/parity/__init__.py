"""The old code and the new, run side by side, and judged."""
