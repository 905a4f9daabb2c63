import sys
from pathlib import Path

sys.path.insert(0, 'src')

from lab.learning import train

train(int(Path('data/steps.txt').read_text()))
