"""A neural radiance field with spherical harmonics, by Adam with a schedule."""

from __future__ import annotations

from typing import Any

from benchmarks.made_up import small_radiance_field


def train(tree: Any) -> None:
    """The whole loop, for six steps."""
    flags = ["--nouse_viewdirs", "--sh_deg=1"]
    small_radiance_field(tree, "nerf_sh.train", *flags).main([])
