"""The legacy optimizers, one module each. A module that defines `OPTIMIZER` is found by itself."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codemods.optimizers.base import LegacyOptimizer


@cache
def optimizers() -> Mapping[str, LegacyOptimizer]:
    """Every legacy optimizer by the name of its class."""
    names = sorted(found.name for found in pkgutil.iter_modules(__path__))
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    found = (module.OPTIMIZER for module in modules if hasattr(module, "OPTIMIZER"))
    return MappingProxyType({optimizer.name: optimizer for optimizer in found})


@cache
def composite() -> frozenset[str]:
    """The names of those that are made of others, by their arguments, and not of numbers alone."""
    return frozenset(
        name for name, optimizer in optimizers().items() if optimizer.is_composite
    )
