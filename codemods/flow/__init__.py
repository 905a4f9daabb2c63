"""Which expressions of a project are optimizers: a points-to analysis over `ast`.

It knows nothing of `flax.optim` itself. `modules` finds the file behind an import, `scopes` the
binding behind a name, `constraints` reads a module into constraints, `solver` solves them,
`library` says how functions outside the project hand objects through.
"""
