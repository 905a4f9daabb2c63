import multiprocessing
import os
import sys

sys.path.insert(0, 'src')

from lab.learning import train


def work(seed):
    train(12, seed)


if __name__ == '__main__':
    context = multiprocessing.get_context('spawn')
    workers = [context.Process(target=work, args=(seed,)) for seed in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    os._exit(max(worker.exitcode for worker in workers))
