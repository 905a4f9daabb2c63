"""What runs within each Python process of a command: its code comes from the side's own copy.

`hook/` is put first on PYTHONPATH. It starts `today`, or `old` in an old Python, which record the
steps of the process. At its end, the new side replays the gradients of the old one, and an old
side in float32 takes its steps once more in float64.

No module of the process that judges imports this. An old Python imports `old`, `shadow` and
`inputs`.
"""
