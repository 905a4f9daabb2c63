"""Move code from the removed `flax.optim` to optax: the command-line application on top of `codemods`."""

__version__ = "0.1.0"
