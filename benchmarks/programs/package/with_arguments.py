import argparse
import json
import os
import sys
from pathlib import Path

sys.path.insert(0, 'src')

from lab import settings
from lab.learning import train

TRAINERS = {'momentum': train}

parser = argparse.ArgumentParser()
parser.add_argument('--config', type=Path)
parser.add_argument('--trainer', choices=TRAINERS, default='momentum')
arguments = parser.parse_args()
if arguments.config is not None:
    settings.RATE = json.loads(arguments.config.read_text())['rate']
settings.RATE = float(os.environ.get('RATE', settings.RATE))
TRAINERS[arguments.trainer]()
