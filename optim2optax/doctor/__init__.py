"""What keeps a project from running on the JAX of today."""
