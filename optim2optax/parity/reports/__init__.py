"""The reports of a parity run: one model, and a template for each format."""
