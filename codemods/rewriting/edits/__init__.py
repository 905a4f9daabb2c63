"""What a rule decides to do at a place: edits as data, which know their own consequences.

They are made from templates with holes for pieces of the original source. A new kind of edit is one
class here, and one function of `rewriting` that carries it out.
"""

from codemods.rewriting.edits.base import IT, Edit, Holes, Keep, Made, Place
from codemods.rewriting.edits.calls import (
    Argument,
    ChangeArguments,
    RewriteCall,
)
from codemods.rewriting.edits.definitions import (
    ConvertClass,
    ConvertDefinition,
    ConvertPartial,
)
from codemods.rewriting.edits.expressions import Replace, ReplaceQuoted
from codemods.rewriting.edits.statements import (
    ChangeParameters,
    DeriveState,
    MoveImport,
    MoveStatement,
    ReplaceStatement,
    StatementEdit,
    TakeBody,
)

__all__ = [
    "IT",
    "Argument",
    "ChangeArguments",
    "ChangeParameters",
    "ConvertClass",
    "ConvertDefinition",
    "ConvertPartial",
    "DeriveState",
    "Edit",
    "Holes",
    "Keep",
    "Made",
    "MoveImport",
    "MoveStatement",
    "Place",
    "Replace",
    "ReplaceQuoted",
    "ReplaceStatement",
    "RewriteCall",
    "StatementEdit",
    "TakeBody",
]
