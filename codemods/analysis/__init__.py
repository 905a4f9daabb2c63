"""What is legacy and where: the legacy objects, how sure they are, every use of one, and what escapes."""
