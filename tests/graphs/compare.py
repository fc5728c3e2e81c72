"""Compares the graphs of programs.py with those of the same programs in Tower; writes docs/graphs-compared.md.

Nodes are matched by name. Parts of a graph are regular expressions of names and ops, with the reason for what differs; a
node belongs to the first part that fits.
"""
import collections
import glob
import os
import re
import subprocess
import sys
import tempfile
import textwrap

import programs

tf = programs.tf
HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "..", "..", "docs", "graphs-compared.md")

TUTORIAL = ["train", "cifar10", "--data-dir", "data", "--batch-size", "8", "--max-steps", "1", "--train-dir", "run"]
# A function of programs.py, a title, Tower's command, where its graph is, and what is left out of names (a regular expression
# and what stays of it): of one tower its scope, for TensorFlow's graph has none, and of resnet/tower_0/ the scope of variables,
# for in Tower it is inside of the tower's.
PROGRAMS = [
    ("cifar10_train", "The CIFAR-10 tutorial", ["tower"] + TUTORIAL + ["--compat", "tutorial"], "run/*.meta", ("tower_0/", "")),
    ("cifar10_multi_gpu_train", "The tutorial on two GPUs",
     ["tower"] + TUTORIAL + ["--compat", "tutorial-prefetch", "--virtual-gpus", "2"], "run/*.meta", None),
    ("mnist_sample", "The MNIST sample on two GPUs", ["examples/07_mnist_towers", "quick", "2"], "logs/events*", None),
    ("cifar10_estimator", "cifar10_estimator on two GPUs, of 8 layers",
     ["tower", "train", "resnet", "--num-layers", "8", "--compat", "estimator", "--data-set", "synthetic", "--virtual-gpus", "2",
      "--train-batch-size", "16", "--max-steps", "1", "--job-dir", "run"], "run/*.meta",
     (r"resnet(?:_1)?/(tower_\d/)|(tower_\d/)resnet/", r"\1\2")),
]

PARTS = [  # title, pattern of "name op", why it differs
    ("asking for variables without a value", r"^report_uninitialized|^concat(_\d)?[/ ](?!.*/)|^init[_/ ]|^group_deps|^init ",
     "A MonitoredSession asks which variables lack a value. Tower knows without nodes, and gives all their first value by one."),
    ("saver", r"^save/",
     "The same files, written and read by the same ops. Each variable is read and assigned by a node of its own; TensorFlow also "
     "chooses a folder for shards by nodes."),
    ("summaries", r"Summary$|/tags? Const$|zero_fraction|^Merge",
     "But for the images' and the queue's, the trainer writes them from what it fetches: the same tags in the event file, and no "
     "nodes."),
    ("moving averages", r"ExponentialMovingAverage|/avg[/ ]|^avg|loss_averages|AssignMovingAvg|IsVariableInitialized|^cond(_\d+)?/"
                        r"|BatchNorm(_\d+)?/(Sub|Mul|AssignSub)",
     "The same arithmetic. An average of TensorFlow's begins with its variable's value by a condition for each."),
    ("input", r"^input_producer|^data_augmentation|^shuffle_batch|^(tower_\d/)?prefetch_queue|[Dd]equeue|TowerInput"
              r"|^Placeholder|^Reshape|^(tower_\d/)?(Cast|Const) |^split|^OneHot|^one_hot|^images",
     "The tutorial's files, reader, distortions and queues are nodes, as there; what TensorFlow asserts of their shapes is "
     "known when they are built. A flipped image is chosen by `Select`, there by a condition. The other programs' examples come "
     "from a pipeline beside the graph, and a node takes what it gives."),
    ("first values", r"/Initializer/|/Assign ",
     "The same distributions from the same streams of random numbers. A uniform one's `max - min` is a constant, and constants "
     "are filled in by nodes where TensorFlow writes them down."),
    ("optimizer", r"^(GradientDescent|Adam|Momentum)|/(Adam|Momentum)(_\d)?[/ ]|ExponentialDecay|PiecewiseConstant|^beta\d_power"
                  r"|learning_rate",
     "A resource is updated by an op of its own. A piecewise rate selects here; there it is a tree of conditions."),
    ("mean of gradients", r"^(ExpandDims|concat|Mean|Const|gradient_averaging|average)[_/ ]",
     "Expanded, joined and averaged for each variable, as in the tutorial, which cifar10_estimator (added and multiplied) is given "
     "too."),
    ("gradients", r"gradients",
     "The same rules. TensorFlow ties the gradients of a node together (`tuple`), and asks by nodes for sizes that Tower knows "
     "when it builds."),
    ("variables", r" (VariableV2|VarHandleOp|ReadVariableOp)$|/read Identity$",
     "Variables are resources, as in later TensorFlow; each use in a moving average or a saver reads anew."),
    ("network and loss", r"", ""),
]

NETWORKS = {  # why networks and losses differ
    "cifar10_train":
        "A dense layer's biases are added by the op that adds biases, not by the one that adds anything; the images are made flat "
        "before `local3`, not in it. The cross-entropy has no scope for a single node. `classes` and `probabilities` are there for "
        "whoever fetches them.",
    "cifar10_multi_gpu_train":
        "As with one tower. The tutorial's loss also adds up all towers' losses so far, which nobody uses; that is left out.",
    "mnist_sample":
        "The sample's dropouts, which pass everything on, are left out; its cross-entropy takes labels of any rank, and has nodes "
        "that make them a matrix and back.",
    "cifar10_estimator":
        "Pixels are scaled where they become floats, not in the network. The sample's loss counts the examples that weigh "
        "anything (`num_present`), here it is a mean. Convolutions are counted through the network, as their variables are, and "
        "not anew in each scope. A batch norm's moments of no examples yet are filled in.",
}

SAME_BUT_FOR_RESOURCES = {"VariableV2": "VarHandleOp", "Assign": "AssignVariableOp", "AssignAdd": "AssignAddVariableOp",
                          "AssignSub": "AssignSubVariableOp"}


def by_name(graph, shortened):
    nodes = {}
    for node in graph.node:
        name = re.sub(shortened[0], shortened[1], node.name) if shortened else node.name
        nodes[name if name not in nodes else node.name] = node
    return nodes


def make_data(folder):
    """Files as large as CIFAR-10's, of black images: what is in them is in no graph."""
    os.mkdir(folder)
    for i in range(1, 6):
        with open(os.path.join(folder, "data_batch_%d.bin" % i), "wb") as file:
            file.truncate(10000 * 3073)


def read_tower(build, command, pattern):
    with tempfile.TemporaryDirectory() as folder:
        make_data(os.path.join(folder, "data"))
        subprocess.run([os.path.abspath(os.path.join(build, command[0]))] + command[1:], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        path = glob.glob(os.path.join(folder, pattern))[0]
        graph = tf.GraphDef()
        if path.endswith(".meta"):
            meta = tf.MetaGraphDef()
            meta.ParseFromString(open(path, "rb").read())
            graph = meta.graph_def
        else:
            for event in tf.train.summary_iterator(path):
                if event.graph_def:
                    graph.ParseFromString(event.graph_def)
    return graph


def read_tensorflow(function):
    with tf.Graph().as_default() as graph:
        getattr(programs, function)()
        return graph.as_graph_def()


def device_of(node):
    """In one spelling: of TensorFlow's nodes, what was asked for; of Tower's, the local device."""
    name = node.device.replace("/job:localhost/replica:0/task:0", "")
    return re.sub("^/([cg]pu):", lambda kind: "/device:%s:" % kind.group(1).upper(), name)


def part_of(name, node):
    return next(i for i, part in enumerate(PARTS) if re.search(part[1], "%s %s" % (name, node.op)))


def verdict(name, theirs, ours):
    """In what a node of both graphs differs: "" in nothing."""
    a, b = theirs[name], ours[name]
    if SAME_BUT_FOR_RESOURCES.get(a.op, a.op) != b.op:
        return "op"
    return "device" if device_of(a) and device_of(a) != device_of(b) else ""


def compare(theirs, ours):
    """For each part: nodes of each, those with the same name and op, and on the same device; names of what differs."""
    rows = [{"theirs": 0, "ours": 0, "op": 0, "device": 0, "only": ([], []), "other": []} for _ in PARTS]
    for side, graph in (0, theirs), (1, ours):
        for name, node in graph.items():
            row = rows[part_of(name, node)]
            row["ours" if side else "theirs"] += 1
            if name not in (theirs if side else ours):
                row["only"][side].append(name)
            elif side == 0:
                found = verdict(name, theirs, ours)
                row["op"] += found != "op"
                row["device"] += not found
                if found:
                    row["other"].append((name, found))
    return rows


def op_counts(names, graph):
    counts = collections.Counter(graph[name].op for name in names)
    return ", ".join("%d %s" % (n, op) for op, n in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def paragraph(text):
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False, subsequent_indent="  " * text.startswith("- "))


def write_program(out, title, command, why, theirs, ours):
    rows = compare(theirs, ours)
    out.append("## %s\n" % title)
    shown = " ".join(command).replace(" --train-dir run", "").replace(" --job-dir run", "")
    out.append("    %s\n\nIt has %d nodes, TensorFlow's %d.\n" % (shown, len(ours), len(theirs)))
    out.append("| part | TensorFlow | Tower | same name and op | and device |\n| --- | ---: | ---: | ---: | ---: |")
    for (name, _, _), row in zip(PARTS, rows):
        if row["theirs"] or row["ours"]:
            out.append("| %s | %d | %d | %d | %d |" % (name, row["theirs"], row["ours"], row["op"], row["device"]))
    last = rows[-1]
    out.append("\n%s\n" % paragraph(why))
    out.append("| of the network and its loss | ops |\n| --- | --- |")
    out.append("| under another name, or only in TensorFlow | %s |" % (op_counts(last["only"][0], theirs) or "none"))
    out.append("| under another name, or only in Tower | %s |" % (op_counts(last["only"][1], ours) or "none"))
    others = ["`%s`: %s, here %s" % ((name,) + ((theirs[name].op, ours[name].op) if found == "op" else
                                               (device_of(theirs[name]), device_of(ours[name]) or "none asked for")))
              for name, found in last["other"]]
    out.append("| of the same name, and otherwise | %s |\n" % ("; ".join(others) or "none"))


def print_nodes(title, theirs, ours):
    print(title)
    for row, (part, _, _) in zip(compare(theirs, ours), PARTS):
        for name in row["only"][0]:
            print("  %s: only TensorFlow: %s (%s) %s" % (part, name, theirs[name].op, device_of(theirs[name])))
        for name in row["only"][1]:
            print("  %s: only Tower: %s (%s) %s" % (part, name, ours[name].op, device_of(ours[name])))
        for name, found in row["other"]:
            a, b = theirs[name], ours[name]
            print("  %s: %s: %s (%s) %s, here (%s) %s" % (part, found, name, a.op, device_of(a), b.op, device_of(b)))


def main(build, *options):
    out = [open(os.path.join(HERE, "page.md")).read()]
    for part, _, why in PARTS[:-1]:
        out.append(paragraph("- **%s**: %s" % (part, why)))
    out.append("")
    for function, title, command, pattern, shortened in PROGRAMS:
        theirs = by_name(read_tensorflow(function), shortened)
        ours = by_name(read_tower(build, command, pattern), shortened)
        if "--nodes" in options:
            print_nodes(title, theirs, ours)
        write_program(out, title, command, NETWORKS[function], theirs, ours)
    if "--nodes" not in options:
        with open(PAGE, "w") as file:
            file.write("\n".join(out).rstrip() + "\n")


main(*sys.argv[1:])
