import sys

sys.path.insert(0, 'src')

from lab.learning import train


def test_it_learns():
    train(12)
