"""Whether the params of an optimizer are given a type of 16 bits."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.naming import last_word
from codemods.analysis.param_types import NUMERIC, Making, ParamTypes
from codemods.inference.binding import values_of
from codemods.model import Location
from codemods.sources.modules import Unit
from codemods.vocabulary import SHAPES_OF, words

SHORT = frozenset(("bfloat16", "float16"))
DTYPES = SHORT.union(words("float32 float64 int8 int16 int32 int64 uint8"))


class MakingShort(Making):
    """Follows a value back to where a part of it is given a type of 16 bits.

    What a model computes with is none: `nn.Dense(3, dtype=jnp.bfloat16)` has float32 params.
    """

    def is_typed(self, node: ast.expr, unit: Unit) -> bool:
        if not isinstance(node, ast.Call):
            return False
        types = [word.value for word in node.keywords if word.arg == "param_dtype"]
        # kernel.astype(jnp.bfloat16), jnp.bfloat16(kernel)
        if self._is_numeric(node):
            types += [node.func, *values_of(node)]
            # jnp.ones(3, **options)
            unpacked = (word.value for word in node.keywords if word.arg is None)
            for options in unpacked:
                place = ("item of", ("expression", options, None), "dtype")
                found = self.facts.flow.sources(place)
                types += (one for one in found if isinstance(one, ast.expr))
        return any(not self._types(one).isdisjoint(SHORT) for one in types)

    def made_out_of_view(self, path: str, text: str) -> Iterator[Location]:
        return iter(())

    def arguments(self, call: ast.Call) -> list[ast.expr]:
        values = values_of(call)
        name = self.facts.full_name(call.func)
        # jax.eval_shape(model.init, rng, image)
        if name in SHAPES_OF:
            return values[:1]
        is_known = self._is_numeric(call) or name.startswith(("flax.", "functools."))
        return values if is_known else []

    def parts(self, call: ast.Call) -> list[ast.expr]:
        # kernel.astype(jnp.float32), whatever the kernel was
        is_given_type = any(map(self._types, values_of(call)))
        return [] if self._is_numeric(call) and is_given_type else super().parts(call)

    def _is_numeric(self, call: ast.Call) -> bool:
        """Whether a call makes numbers, of a type that may be an argument."""
        is_method = last_word(call.func) in ("astype", "view", "param")
        return is_method or self.facts.full_name(call.func).startswith(NUMERIC)

    def _types(self, node: ast.expr) -> set[str]:
        """The types of numbers that an expression may be."""
        match node:
            # dtype="bfloat16"
            case ast.Constant(value=str(text)):
                found = {text}
            case _:
                names = self.facts.names(node)
                numeric = (name for name in names if name.startswith(NUMERIC))
                found = {name.rpartition(".")[2] for name in numeric}
        return found & DTYPES


class LowPrecision(ParamTypes):
    """Finds the optimizers that get params of 16 bits, which a legacy step may make float32."""

    named = re.compile(r"float16\b")
    making = MakingShort
