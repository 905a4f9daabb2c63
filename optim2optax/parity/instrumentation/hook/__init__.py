"""The folder that is put first on the PYTHONPATH of a command."""
