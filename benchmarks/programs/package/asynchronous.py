import asyncio
import sys

sys.path.insert(0, 'src')

from lab.learning import create, step

import numpy as np


async def main():
    rng = np.random.default_rng(0)
    optimizer = create(0)
    for _ in range(12):
        await asyncio.sleep(0)
        optimizer = step(optimizer, rng.normal(size=(4, 3)))


asyncio.run(main())
