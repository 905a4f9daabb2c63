"""A session of parity: what is asked for becomes cases, which run and become one report."""
