"""Calls the function in a file of allocrig._traced, in a process of its own."""
import multiprocessing.spawn
import pickle
import sys


def main(path):
    with open(path, "rb") as file:
        preparation, pickled = pickle.load(file)
    multiprocessing.spawn.prepare(preparation)
    pickle.loads(pickled)()


if __name__ == "__main__":
    main(sys.argv[1])
