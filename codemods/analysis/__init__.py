"""What is legacy and where: the legacy objects, how sure they are, their uses, and what escapes."""
