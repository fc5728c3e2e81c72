#!/usr/bin/env python3
"""Draws graphs of one op, runs them in TensorFlow and in Tower, and compares values, gradients and error codes; gradients
in float64 with differences of values, too.

usage: run.py [--library FILE] [--seed N] [--cases N] [--ops A,B] [--case I] [--show N] [--write FILE --sample N]

Case I of a seed is always the same. --case I runs it alone and says what it is. --write keeps a sample of the cases
that agree, each op's turn about, for tests/test_random_ops.c. Ends with 1 where something differs.
"""
import argparse
import collections
import inspect
import os
import re
import struct
import sys
import time

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

from drawing import GENERATORS, Draw, f32
import basics  # fills GENERATORS, as the next two do
import cases
import transforms
from tower import Tower, TowerError

v1 = tf.compat.v1
TOLERANCES = {"float32": 2e-5, "float64": 1e-10, "float16": 6e-3, "bfloat16": 4e-2, "complex64": 2e-5,
              "complex128": 1e-10}
MODES = ({}, {"plain": True, "disable": "all"}, {"threads": 3})
STEP = 1e-5  # of a difference
# TensorFlow's gradients that no difference shows.
NO_DIFFERENCES = {
    "Cholesky": "a matrix and what lies across its diagonal move as one",
    "NthElement": "elements that are equal share it",
    "SoftmaxCrossEntropyWithLogits": "what backprop owes to the labels is left out",
    "Xdivy": "0 where x is", "Xlog1py": "0 where x is", "Xlogy": "0 where x is",
}
KINDS = ("equal", "refused alike", "no kernel there", "explained", "other code", "differ", "only Tower", "only TensorFlow")
# Versions of the libraries that make pictures differ in their bytes, and by one in what JPEGs show.
NOT_KEPT = ("DecodePng", "DecodeJpeg", "DecodeImage", "EncodePng", "EncodeJpeg", "ImageSummary")
# What Python calls otherwise than the op does.
RENAMED = {"reduction_indices": "axis", "split_dim": "axis", "dim": "axis", "squeeze_dims": "axis", "input": "condition",
           "dimension": "axis", "concat_dim": "axis", "t": "x", "e": "y"}
MOST_BYTES = 2500  # of a case that is kept
FINE = 4  # of these kinds are no difference


# What TensorFlow refuses and Tower need not, in words of TensorFlow's message.
EXPLAINED_REFUSALS = (
    "Inner dimension should be greater than zero",      # rows without elements: nothing is to do
    "ReverseSequenceOp : Unhandled input dimensions",   # more than 5 axes
    "Indices and updates specified for empty output",   # nothing is to do
    "Only indices.shape[-1] values between 1 and",      # the whole, or more than 5 axes
    "Unexpected error in binary operator",              # division by zero of integers of 8 and 16 bits
    "inputs rank not in [0,5]",                         # more than 5 axes
    "Only ranks up to", "only support up to 7 input dim",  # more axes
    "WhereOp : Unhandled input dimensions",             # a scalar
    "Requires delta != 0", "must match dimensions [",   # gradients of TopKV2 and GatherNd where something is empty
    "Total paddings must be less than the input dimension size: 0", "is empty in shape",  # nothing is to do
)
# What Tower refuses and TensorFlow does not.
EXPLAINED_BY_TOWER = (
    "is not in [0, ", "does not index into shape",  # an index beyond the end: TensorFlow does not look at a single one
    "is out of bound as with dims", "appears twice in the permutation",  # of -1; of sizes of 1
    "at most 12",
)


def is_explained(case, want, got):
    """Differences that are TensorFlow's: rules that docs/compatibility.md lists."""
    if case.op.startswith("SparseSegment"):  # rows that no segment has are not cleared there
        return bool(np.all((want == got) | (got == 0) | np.isclose(want.astype(float), got.astype(float))))
    if case.op == "Erf":  # of an infinity
        return bool(np.all((want == got) | (np.isnan(want) & (np.abs(got) == 1)) | np.isclose(want, got, 1e-4, equal_nan=True)))
    if case.op == "DepthwiseConv2dNative":  # what no window of a filter reaches is not cleared there
        untouched = np.all(got == 0, axis=(2, 3), keepdims=True)
        return bool(np.all(np.isclose(want, got, 1e-4, 1e-4) | untouched))
    if case.op.endswith("3D"):  # where strides leave places out, SAME begins in the middle there, forward only
        return case.attrs["padding"] == "SAME" and any(
            a > b for a, b in zip(case.attrs["strides"][1:], case.attrs.get("ksize", (1,) + case.inputs.get("filter", f32(0)).shape)[1:]))
    return False


class Failure(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def is_float(array):
    return array.dtype.name in TOLERANCES


def words_of(error):
    """A message of TensorFlow's without the stack of Python around it."""
    found = re.search(r"Node: '[^']*'\n(.*)", error.message)
    return found.group(1) if found else error.message


class Built:
    """A case as a graph: node "n" is the op, x_0, x_1... its inputs, dy_k what flows into output k."""

    def __init__(self, case, draw):
        self.case, self.draw, self.feeds, self.reads, self.dys, self.xs = case, draw, {}, [], [], []
        self.strays = None
        self.graph = tf.Graph()
        self.count = 0
        with self.graph.as_default():
            try:
                self.build()
            except tf.errors.OpError as e:
                raise Failure(e.error_code, words_of(e))
            except (ValueError, IndexError) as e:
                raise Failure(3, str(e))

    def value(self, name, array, definition):
        x = "x_%d" % self.count
        self.count += 1
        case = self.case
        if name in case.variables:
            return self.variable(x, array, definition)
        may = is_float(array) if case.fed is None else name in case.fed
        if may and self.draw.flag():
            tensor = v1.placeholder(tf.as_dtype(array.dtype) if array.dtype.kind != "O" else tf.string, array.shape,
                                    name=x)
            self.feeds[x + ":0"] = array
        else:
            tensor = tf.constant(array, name=x)
        if is_float(array):
            self.xs.append(tensor)
        return tensor

    def variable(self, x, array, definition):
        dtype = tf.as_dtype(array.dtype)
        if definition.is_ref:
            handle = tf.raw_ops.VariableV2(shape=array.shape, dtype=dtype, shared_name="v" + x, name=x)
            start = v1.assign(handle, tf.constant(array))
            self.reads.append(tf.identity(handle, name="read_" + x))
        else:
            handle = tf.raw_ops.VarHandleOp(shape=array.shape, dtype=dtype, shared_name="v" + x, name=x)
            start = tf.raw_ops.AssignVariableOp(resource=handle, value=tf.constant(array))
            self.reads.append(tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype, name="read_" + x))
        self.starts.append(start.op if hasattr(start, "op") else start)
        return handle

    def value_of(self, x):
        return self.feeds[x.name] if x.name in self.feeds else tf.get_static_value(x)

    def build(self):
        case = self.case
        self.starts = []
        definition = op_def_registry.get(case.op)
        arguments = dict(case.attrs)
        for argument in definition.input_arg:
            given = case.inputs[argument.name]
            if isinstance(given, (list, tuple)):
                arguments[argument.name] = [self.value(argument.name, np.asarray(v), argument) for v in given]
            else:
                arguments[argument.name] = self.value(argument.name, np.asarray(given), argument)
        function = getattr(tf.raw_ops, case.op)
        taken = inspect.signature(function).parameters
        function(name="n", **{k if k in taken else RENAMED[k]: v for k, v in arguments.items()})
        node = self.graph.get_operation_by_name("n")
        kept = [i for i in range(len(node.outputs)) if case.keep is None or i in case.keep]
        self.fetches = [node.outputs[i] for i in kept if not node.outputs[i].dtype._is_ref_dtype]
        v1.group(*self.starts, name="init")
        self.gradients = []
        if case.gradients and not case.variables and self.xs:
            self.differentiate([t for t in node.outputs if (t.dtype.is_floating or t.dtype.is_complex) and not t.dtype._is_ref_dtype])

    def differentiate(self, ys):
        ys = [y for y in ys if y in self.fetches]
        if not ys:
            return
        with v1.Session(graph=self.graph) as session:  # for the shapes, which may be computed
            shapes = [v.shape for v in session.run(ys, self.feeds)]
        try:
            dys = [tf.constant(self.draw.values(y.dtype.as_numpy_dtype, s), name="dy_%d" % y.value_index)
                   for y, s in zip(ys, shapes)]
            found = v1.gradients(ys, self.xs, dys)
        except LookupError:
            return
        self.ys, self.dys = ys, dys
        self.gradients = [(x, g) for x, g in zip(self.xs, found) if g is not None]
        self.gradients = [(x, tf.convert_to_tensor(g) if isinstance(g, tf.IndexedSlices) else g)
                          for x, g in self.gradients]
        self.without = [x for x, g in zip(self.xs, found) if g is None]


def by_tensorflow(built):
    """Values of the outputs, then gradients, then variables."""
    try:
        with v1.Session(graph=built.graph) as session:
            session.run("init")
            dx = [g for _, g in built.gradients]
            values = session.run(built.fetches + dx, built.feeds) if built.fetches else session.run("n", built.feeds)
            if not built.fetches:
                values = []
            return values + session.run(built.reads)
    except tf.errors.OpError as e:
        raise Failure(e.error_code, words_of(e))


def by_tower(tower, built, definition, mode):
    with tower.graph(definition) as graph:
        gradients = []
        if not graph.is_known("n"):  # running it says why
            graph.session(**mode).run(["n"], built.feeds)
        if built.gradients:
            xs = [x.name for x, _ in built.gradients]
            gradients = graph.gradients([y.name for y in built.ys], [d.name for d in built.dys], xs)
        session = graph.session(**mode)
        session.run(["init"], {})
        flows = [dx is not None for dx in gradients]
        fetches = [f.name for f in built.fetches] + [dx for dx in gradients if dx]
        values = session.run(fetches, built.feeds) if fetches else session.run(["n"], built.feeds)[:0]
        for k in (k for k, is_there in enumerate(flows) if not is_there):  # where none flows it is zero
            values.insert(len(built.fetches) + k, np.zeros_like(built.value_of(built.gradients[k][0])))
        return values + (session.run([r.name for r in built.reads], {}) if built.reads else [])


def look(case, value):
    """What a picture shows, which its bytes do not settle."""
    if case.op in ("EncodePng", "EncodeJpeg"):
        return [tf.io.decode_image(value).numpy()]
    summary = v1.Summary.FromString(value)
    return [v.tag for v in summary.value] + [tf.io.decode_png(v.image.encoded_image_string).numpy() for v in summary.value]


def difference(case, want, got):
    """Why two values are not the same, or None."""
    want = np.asarray(want)
    if want.dtype.kind == "S":
        want = want.astype(object)
    if case.op in ("EncodePng", "EncodeJpeg", "ImageSummary"):
        pairs = list(zip(look(case, want.item()), look(case, got.item())))
        same = all(np.array_equal(a, b) if isinstance(a, str) else a.shape == b.shape and
                   np.abs(a.astype(int) - b).max() <= (0 if "Png" in case.op else 2) for a, b in pairs)
        return None if same and len(look(case, want.item())) == len(pairs) else "another picture"
    if want.shape != got.shape or (want.dtype != got.dtype and want.dtype.kind != "O"):
        return "%s%s, expected %s%s" % (got.dtype, got.shape, want.dtype, want.shape)
    if not is_float(want):
        return None if np.array_equal(want, got) else "%s, expected %s" % (got.ravel()[:8], want.ravel()[:8])
    tolerance = case.tolerance or 0
    tolerance = max(tolerance, TOLERANCES[want.dtype.name])
    if want.dtype.kind == "c":  # part by part
        want, got = (np.stack([v.real, v.imag], -1) for v in (want, got))
    a, b = want.astype(np.float64), got.astype(np.float64)
    finite = np.isfinite(a)
    scale = max(1.0, np.abs(a[finite]).max() if finite.any() else 0)
    same = (a == b) | (np.isnan(a) & np.isnan(b)) | (finite & (np.abs(a - b) <= tolerance * scale))
    if same.all():
        return None
    i = np.argmin(same.ravel())
    return "element %d is %.9g, expected %.9g (%d of %d)" % (i, b.ravel()[i], a.ravel()[i], (~same).sum(), same.size)


def strays(tower, built, definition, mode, got):
    """How far the gradients in float64 are from what a small step changes, of 1; None where that says nothing."""
    moved = [(x.name, built.value_of(x), dx) for (x, _), dx in zip(built.gradients, got[len(built.fetches):])
             if dx.dtype == np.float64 and dx.size]
    if not moved or built.case.op in NO_DIFFERENCES or any(y.dtype != tf.float64 for y in built.ys):
        return None
    drawn = np.random.default_rng(1)
    ways = [drawn.choice([-1.0, 1.0], dx.shape) for _, _, dx in moved]
    dys = [tf.get_static_value(dy) for dy in built.dys]
    with tower.graph(definition) as graph:
        session = graph.session(**mode)
        session.run(["init"], {})

        def after(step):
            there = {name: value + step * way for (name, value, _), way in zip(moved, ways)}
            values = session.run([y.name for y in built.ys], {**built.feeds, **there})
            return sum(float(np.sum(dy * value)) for dy, value in zip(dys, values))

        here, again = after(0), after(0)
        sides = [(after(-step), after(step), step) for step in (STEP, STEP / 2)]
    scale = max(1.0, abs(here), sum(float(np.abs(dx).sum()) for _, _, dx in moved))
    bends = [abs(above + below - 2 * here) / step / scale for below, above, step in sides]
    coarse, fine = [(above - below) / (2 * step) for below, above, step in sides]
    if here != again or not np.isfinite(scale + sum(bends)):
        return None  # random numbers, infinities
    if bends[1] > max(0.75 * bends[0], 1e-8) or abs(coarse - fine) / scale > 1e-7:
        return None  # a corner, where the bend does not get smaller with the step; too steep for such a step
    return abs(fine - sum(float((dx * way).sum()) for (_, _, dx), way in zip(moved, ways))) / scale


def compare(tower, seed, index, names):
    """Returns the op, what kind of agreement, a sentence, and what a sample needs."""
    draw = Draw(seed, index)
    name = names[index % len(names)]
    case = GENERATORS[name](draw, name)
    mode = MODES[index % len(MODES)]
    built, wanted, refusal = None, None, None
    try:
        built = Built(case, draw)
        wanted = by_tensorflow(built)
        definition = built.graph.as_graph_def().SerializeToString()
    except Failure as e:
        refusal = e
    if built is None:  # TensorFlow's Python builds no such graph: an error is expected, which Tower's builders give too
        return name, "refused alike", "", None
    if refusal:
        definition = built.graph.as_graph_def().SerializeToString()
    try:
        got = by_tower(tower, built, definition, mode)
    except TowerError as e:
        if refusal is None and any(words in str(e) for words in EXPLAINED_BY_TOWER):
            return name, "explained", "", None
        if refusal is None:
            return name, "only TensorFlow", "%d: %s" % (e.code, e), None
        if any(words in str(refusal) for words in EXPLAINED_REFUSALS):  # another code, for another reason
            return name, "explained", "", None
        if refusal.code != e.code:
            return name, "other code", "%d %s; TensorFlow %d %s" % (e.code, e, refusal.code, refusal), None
        return name, "refused alike", "", (built, None, e.code)
    if refusal and "No OpKernel was registered" in str(refusal):
        return name, "no kernel there", "", None
    if refusal and any(words in str(refusal) for words in EXPLAINED_REFUSALS):
        return name, "explained", "", None
    if refusal:
        return name, "only Tower", "TensorFlow: %d %s" % (refusal.code, str(refusal)[:200]), None
    for i, (want, have) in enumerate(zip(wanted, got)):
        why = difference(case, want, have)
        if why and is_explained(case, want, have):
            return name, "explained", "", None
        if why:
            part = "output" if i < len(built.fetches) else "gradient of " + built.gradients[
                i - len(built.fetches)][0].name if i < len(built.fetches) + len(built.gradients) else "variable"
            return name, "differ", "%s %d: %s" % (part, i, why), None
    built.strays = strays(tower, built, definition, mode, got) if built.gradients else None
    if built.strays is not None and built.strays > 1e-6:
        return name, "differ", "gradients are %.3g from differences" % built.strays, None
    return name, "equal", "", (built, wanted, 0)


def constant(name, value):
    """A Const node."""
    value = np.asarray(value)
    node = tf.compat.v1.NodeDef(name=name, op="Const")
    proto = tf.make_tensor_proto(value.astype(object) if value.dtype.kind == "S" else value)
    node.attr["dtype"].type = proto.dtype
    node.attr["value"].tensor.CopyFrom(proto)
    return node


def record(built, wanted, code):
    """The case as one GraphDef, with what comes of it as constants: tests/test_random_ops.c reads them."""
    definition = built.graph.as_graph_def()
    kept = ["n", "init"] + [t.op.name for t in built.xs + built.dys + built.reads]
    definition = v1.graph_util.extract_sub_graph(definition, list(dict.fromkeys(kept)))
    nodes = [constant(n.name, built.feeds[n.name + ":0"]) if n.op == "Placeholder" else n for n in definition.node]
    made = v1.GraphDef(node=nodes)
    made.versions.CopyFrom(definition.versions)
    names = ["want_%d" % f.value_index for f in built.fetches]
    names += ["want_d" + x.op.name for x, _ in built.gradients] + ["want_" + r.op.name for r in built.reads]
    made.node.extend(constant(name, value) for name, value in zip(names, wanted or []))
    if built.case.tolerance:
        made.node.append(constant("tolerance", np.float64(built.case.tolerance)))
    return struct.pack("<II", made.ByteSize(), code) + made.SerializeToString()


def write(path, records):
    with open(path, "wb") as out:
        for bytes_ in records:
            out.write(bytes_)


def describe(seed, index, names):
    name = names[index % len(names)]
    case = GENERATORS[name](Draw(seed, index), name)
    print(case.op, case.attrs)
    for key, value in case.inputs.items():
        for one in value if isinstance(value, list) else [value]:
            one = np.asarray(one)
            print("  %s: %s %s\n%s" % (key, one.dtype, one.shape, one if one.size < 200 else one.ravel()[:40]))


def main():
    parser = argparse.ArgumentParser()
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("--library", default=os.path.join(here, "../../build/src/libtower.so"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--ops", default="")
    parser.add_argument("--case", type=int)
    parser.add_argument("--show", type=int, default=3, help="of each op, so many that differ")
    parser.add_argument("--write")
    parser.add_argument("--sample", type=int, default=500)
    options = parser.parse_args()
    names = options.ops.split(",") if options.ops else sorted(GENERATORS)
    tower = Tower(options.library)
    if options.case is not None:
        describe(options.seed, options.case, names)
    counts = collections.defaultdict(collections.Counter)
    gradients = differences = 0
    kept, begun, shown = collections.defaultdict(list), time.time(), time.time()
    for index in range(options.cases) if options.case is None else [options.case]:
        name, kind, why, sample = compare(tower, options.seed, index, names)
        counts[name][kind] += 1
        if kind == "equal":
            gradients += len(sample[0].gradients)
            differences += sample[0].strays is not None
        if kind not in KINDS[:FINE] and counts[name][kind] <= options.show:
            print("%s, case %d: %s: %s" % (name, index, kind, why[:400]), flush=True)
        if options.write and sample and name not in NOT_KEPT and len(kept[name]) < -(-options.sample // len(names)):
            bytes_ = record(*sample)
            if len(bytes_) < MOST_BYTES:
                kept[name].append(bytes_)
        if time.time() - shown > 30:
            shown = time.time()
            print("... %d cases, %.0f s" % (index + 1, time.time() - begun), file=sys.stderr, flush=True)
    if options.write:
        turns = max(map(len, kept.values()), default=0)
        records = [kept[name][i] for i in range(turns) for name in sorted(kept) if i < len(kept[name])]
        write(options.write, records[: options.sample])
    print("%-36s" % "op" + "".join("%16s" % k for k in KINDS))
    for name in sorted(counts):
        print("%-36s" % name + "".join("%16d" % counts[name][k] for k in KINDS))
    total = sum(counts.values(), collections.Counter())
    print("%-36s" % "all" + "".join("%16d" % total[k] for k in KINDS))
    print("%d gradients are TensorFlow's; in %d graphs they are the differences, too" % (gradients, differences))
    sys.exit(any(total[k] for k in KINDS[FINE:]))


if __name__ == "__main__":
    main()
