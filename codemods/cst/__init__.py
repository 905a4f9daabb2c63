"""Tools on top of LibCST: templates with holes, and the layout of calls. Knows no optimizer."""
