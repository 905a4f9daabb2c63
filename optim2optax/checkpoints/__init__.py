"""Training checkpoints of the old Flax: what is in them."""

from __future__ import annotations


class CheckpointError(Exception):
    """A file that is no checkpoint, or cannot be read as one; the message names it, says what is wrong, and what to do."""
