"""What an expression is, asked on demand: which known objects it may be."""
