#!/usr/bin/env python3
"""Times programs of programs.py in TensorFlow and in Tower, on the same graph, feeds and number of threads, in turns.

    bench/tf1/compare.py --tower build/bench/bench_graph [--threads 2] [--rounds 7] [--seconds 1] [NAME...]

Both processes are there all the time and take turns, A B A B, about a second each, so that what else the machine does
meets both. What is printed are medians of the rounds, in images, words or examples a second; the ratio is the median of
the ratios of each round. Above 1 Tower is ahead. Beside it is the ratio of the processors' time, which says the same where
others keep the cores busy (with more than one thread both also wait busily). Needs TensorFlow 2 and tf_keras.
"""
import argparse
import os
import statistics
import subprocess
import tempfile
import time

import numpy as np

from programs import PROGRAMS, tf


class TensorFlow:
    def __init__(self, name, folder, threads):
        tf.set_random_seed(1)
        fetched, train, feeds, self.items = PROGRAMS[name](np.random.RandomState(7))
        config = tf.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads)
        self.session = tf.Session(config=config)
        fetched = fetched if isinstance(fetched, (list, tuple)) else [fetched]
        names = [x.name for x in fetched]
        self.fetches, self.init = names + ([train.name] if train is not None else []), []
        graph = tf.get_default_graph()
        if train is None:
            self.session.run(tf.global_variables_initializer())
            definition = tf.graph_util.convert_variables_to_constants(
                self.session, graph.as_graph_def(), [n.split(":")[0] for n in names])
        else:
            self.init = [tf.global_variables_initializer().name, tf.tables_initializer().name]
            definition = graph.as_graph_def()
            definition = tf.graph_util.extract_sub_graph(
                definition, [n.split(":")[0] for n in names] + [train.name] + self.init)
        self.path = os.path.join(folder, name + ".pb")
        with open(self.path, "wb") as file:
            file.write(definition.SerializeToString())
        self.feeds, self.files = {}, []
        for i, (place, value) in enumerate(feeds.items()):
            self.feeds[place.name] = value = np.asarray(value, object if place.dtype == tf.string else place.dtype.as_numpy_dtype)
            path = os.path.join(folder, "%s_%d" % (name, i))
            if place.dtype == tf.string:
                with open(path + ".txt", "w") as file:
                    file.write("\n".join(value) + "\n")
            else:
                np.save(path + ".npy", value)
            self.files.append("%s=%s" % (place.name, path + (".txt" if place.dtype == tf.string else ".npy")))
        # The very graph that Tower gets, in a session of its own.
        self.session.close()
        self.graph = tf.Graph()
        with self.graph.as_default():
            tf.import_graph_def(definition, name="")
        self.session = tf.Session(graph=self.graph, config=config)
        for name in self.init:
            self.session.run(name)
        self.step = self.session.make_callable(self.fetches, feed_list=list(self.feeds))

    def run(self, steps):
        values = list(self.feeds.values())
        busy, begin = time.process_time(), time.monotonic()
        for _ in range(steps):
            self.step(*values)
        return time.monotonic() - begin, time.process_time() - busy


class Tower:
    def __init__(self, program, other, threads):
        command = [program, other.path, "--threads", str(threads)]
        for name in other.init:
            command += ["--init", name]
        for text in other.files:
            command += ["--feed", text]
        for name in other.fetches:
            command += ["--fetch", name]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, steps):
        self.process.stdin.write("%d\n" % steps)
        self.process.stdin.flush()
        answer = self.process.stdout.readline().split()
        if len(answer) != 2:
            raise RuntimeError("bench_graph ended with %s" % self.process.wait())
        return float(answer[0]), float(answer[1])

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def steps_for(side, seconds):
    """How many steps take so long, from a few of them."""
    side.run(2)
    count, spent = 1, 0
    while spent < seconds / 4:
        spent = side.run(count)[0]
        count *= 2
    return max(1, round(count / 2 * seconds / spent))


def compare(name, folder, arguments):
    tf.reset_default_graph()
    other = TensorFlow(name, folder, arguments.threads)
    tower = Tower(arguments.tower, other, arguments.threads)
    steps = [steps_for(side, arguments.seconds) for side in (other, tower)]
    rounds = []
    for _ in range(arguments.rounds):
        rounds.append([[x / n for x in side.run(n)] for side, n in zip((other, tower), steps)])
    rates = [statistics.median(other.items / r[k][0] for r in rounds) for k in (0, 1)]
    ratios = sorted(r[0][0] / r[1][0] for r in rounds)
    busy = statistics.median(r[0][1] / r[1][1] for r in rounds)
    print("| %s | %.4g | %.4g | %.2f (%.2f to %.2f) | %.2f |" % (
        name, rates[0], rates[1], statistics.median(ratios), ratios[0], ratios[-1], busy), flush=True)
    tower.close()
    other.session.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tower", default="build/bench/bench_graph")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    for name in arguments.names:
        if name not in PROGRAMS:
            parser.error("there is no program '%s'; there are %s" % (name, ", ".join(PROGRAMS)))
    print("| program | TensorFlow | Tower | Tower is ahead by | in processors' time |\n| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.names or PROGRAMS:
            try:
                compare(name, folder, arguments)
            except Exception as problem:
                print("| %s | %s |" % (name, str(problem)[:200].replace("\n", " ")), flush=True)


main()
