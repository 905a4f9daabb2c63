"""What becomes of every group: the decisions of the rules made whole, with the imports, names and helpers they need."""
