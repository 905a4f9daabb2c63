"""Conversions of definitions that stand alone, as source text and as objects."""

from typing import Any

import libcst as cst
import optax

from codemods.model import Form
from codemods.optimizers import arguments, optimizers
from codemods.optimizers.base import Support


def converted(source: str, form: Form = "alias", inject: bool = False) -> str:
    """The source text that a definition becomes."""
    return _convert(source, form, inject)[0]


def supports(source: str, form: Form = "alias") -> list[Support]:
    """The helpers that a conversion needs."""
    return list(_convert(source, form, False)[1].values())


def transformation(
    source: str, form: Form = "alias", inject: bool = False, **names: Any
) -> Any:
    """The gradient transformation that a definition becomes, with the helpers that it needs."""
    text, needed = _convert(source, form, inject)
    namespace: dict[str, Any] = {"optax": optax, **names}
    for support in needed.values():
        exec("\n".join(support.imports) + "\n" + support.source, namespace)
    return eval(f"({text})", namespace)


def _convert(source: str, form: Form, inject: bool) -> tuple[str, dict[str, Support]]:
    converter = _Converter(form, inject)
    edited = cst.parse_expression(source).visit(converter)
    assert isinstance(edited, cst.BaseExpression)
    return cst.Module([]).code_for_node(edited), converter.supports


class _Converter(cst.CSTTransformer):
    """Converts from the inside out, as the engine does; a traversal becomes its predicate."""

    def __init__(self, form: Form, inject: bool) -> None:
        super().__init__()
        self.form = form
        self.inject = inject
        self.supports: dict[str, Support] = {}

    def leave_Call(
        self, original_node: cst.Call, updated_node: cst.Call
    ) -> cst.BaseExpression:
        name = (
            updated_node.func.attr
            if isinstance(updated_node.func, cst.Attribute)
            else updated_node.func
        )
        called = name.value if isinstance(name, cst.Name) else ""
        if called == "ModelParamTraversal":
            return updated_node.args[0].value
        if called not in optimizers():
            return updated_node
        legacy = optimizers()[called]
        result = arguments.converted(legacy, updated_node, self.form, self.inject)
        self.supports |= {support.name: support for support in result.supports}
        return result.expression
