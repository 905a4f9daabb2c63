import sys

from absl import app, flags

sys.path.insert(0, 'src')

from lab.learning import train

FLAGS = flags.FLAGS
flags.DEFINE_integer('steps', 12, 'How many steps.')


def main(argv):
    del argv
    train(FLAGS.steps)


if __name__ == '__main__':
    app.run(main)
