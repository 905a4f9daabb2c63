"""Move code from the removed `flax.optim` to optax: the application on top of `codemods`.

`rewrite` gives a program anew, and `compare` tells whether two optimizers are the same function.
"""

from codemods.model import Options, Site
from optim2optax.api import Rewritten, compare, rewrite

__version__ = "0.1.0"
__all__ = ["Options", "Rewritten", "Site", "__version__", "compare", "rewrite"]
