import os
import sys

sys.path.insert(0, 'src')

from flax import serialization

from lab.learning import create, train

folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'runs')
os.makedirs(folder, exist_ok=True)
path = os.path.join(folder, 'last')
optimizer = train()
with open(path, 'wb') as file:
    file.write(serialization.to_bytes(optimizer))
with open(path, 'rb') as file:
    restored = serialization.from_bytes(create(0), file.read())
assert float(abs(restored.target['w'] - optimizer.target['w']).max()) == 0.0
