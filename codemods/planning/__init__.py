"""What becomes of every group, each as a whole, and which imports, names and helpers that needs."""
