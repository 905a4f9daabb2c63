"""A legacy construct of a project: where it is, its kind, and which objects reach it."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from codemods.analysis.legacy import LegacyName, Unnamed
from codemods.analysis.queries import Queries
from codemods.inference.objects import LegacyObject, Object
from codemods.model import Evidence, Location
from codemods.sources.modules import Span, Unit
from codemods.vocabulary import words

TRAIN_STATE = "flax.training.train_state.TrainState"

STRENGTH: tuple[Evidence, ...] = ("proven", "declared", "deduced", "likely")

ATTRIBUTES = {
    kind: frozenset(words(names))
    for kind, names in {
        "definition": "create hyper_params apply_gradient init_state update_hyper_params "
        "state_dict restore_state apply_param_gradient init_param_state",
        "optimizer": "target state optimizer_def apply_gradient replace compute_gradient "
        "compute_gradients optimize replicate unreplicate state_dict restore_state",
        "state": "step param_states replace",
        "state_dict": "",
        "hyper_params": "",
        "step": "",
        "traversal": "iterate update set compose merge filter tree each __getitem__",
    }.items()
}


@dataclass(frozen=True, eq=False)
class Use:
    """One legacy construct: its kind, its place, and the objects that reach it.

    `kind` is one of these:

    - `import`, `module`, `definition`, `base`, `annotation`,
    - `check` (isinstance),
    - `value` (a class or method used as a value),
    - `class` (a class in `Type[…]`),
    - `dynamic` (a class chosen at run time),
    - `custom` (an optimizer of the user's own class is made),
    - `reflection` (an attribute by its name),
    - `in_text` (a text that is run as code, or a key, that may name what is legacy),
    - `filter` (the predicate of a traversal),
    - `stored` (an optimizer that goes to a checkpoint),
    - `restored` (a call that reads one),
    - `state_dict` (an item of a state dict),
    - `checkpoint` (an item of a checkpoint that was read as plain dicts),
    - `patched` (an attribute of a class or module that is assigned),
    - `KIND.ATTRIBUTE` for an attribute of an object, such as `optimizer.target`.

    `name` is what messages say, `legacy` the legacy class or module that it is, if it is one, and
    `cause` another place that the use is about.
    `quoted` is the name in an annotation in quotes, `said` are the expressions that name it there.
    """

    kind: str
    name: str
    unit: Unit
    node: ast.expr | ast.stmt
    objects: tuple[LegacyObject, ...]
    others: tuple[Object, ...] = ()
    legacy_import: bool = True
    quoted: str = ""
    said: tuple[ast.expr, ...] = ()
    legacy: LegacyName | None = None
    cause: Location | None = None

    @property
    def span(self) -> Span:
        return self.unit.span(self.node)

    @property
    def location(self) -> Location:
        """Where it is."""
        return self.unit.location(self.node.lineno)

    @property
    def parent(self) -> ast.AST | None:
        return self.unit.parents.get(self.node)

    @property
    def call(self) -> ast.Call | None:
        """The call of the attribute that this is about; None where the attribute is not called."""
        return self.unit.call_of(self.node)

    @property
    def owner(self) -> ast.expr:
        """The object whose attribute or item this is about."""
        assert isinstance(self.node, ast.Attribute | ast.Subscript)
        return self.node.value

    @property
    def owner_hole(self) -> tuple[str, Span]:
        """The hole `{owner}` of a template, for that."""
        return "owner", self.unit.span(self.owner)

    @property
    def evidence(self) -> Evidence:
        found = {obj.evidence for obj in self.objects}
        return next((level for level in STRENGTH if level in found), "proven")


def owner_of_state(node: ast.expr) -> ast.expr | None:
    """The optimizer in `optimizer.state`, or `optimizer.state[0]` as of a MultiOptimizer."""
    match node.value if isinstance(node, ast.Subscript) else node:
        case ast.Attribute(value=owner, attr="state"):
            return owner
    return None


def legacy_bases(use: Use, facts: Queries) -> set[LegacyName]:
    """The legacy classes from which the class around a use derives."""
    around = class_around(use.unit, use.node)
    if around is None:
        return set()
    return facts.legacy_bases(facts.flow.class_of(around)) - {Unnamed.MODULE}


def class_around(unit: Unit, node: ast.AST) -> ast.ClassDef | None:
    """The class in which a node is."""
    classes = (one for one in unit.ancestors(node) if isinstance(one, ast.ClassDef))
    return next(classes, None)
