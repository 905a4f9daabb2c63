import sys

sys.path.insert(0, 'src')

from lab.learning import train

train()
