#!/usr/bin/env python3
"""Writes more.txt: unsigned integers, complex linear algebra and other ops of TensorFlow 1, in small programs exported
and run by TensorFlow, for tests/test_shapes.c."""

from graph_cases import begin, differentiate, eighths, holder, np, program, random, raw, reseed, tf, words
from op_cases import f32, f64, i32, i64

begin("more.txt", __file__, 5)

# ---- unsigned integers ----

LARGE = {"uint16": [0, 1, 2, 3, 40000, 65535], "uint32": [0, 1, 2, 3, 3000000000, 2**32 - 1],
         "uint64": [0, 1, 2, 3, 2**63 + 5, 2**64 - 1]}
for name, values in LARGE.items():
    dtype = tf.dtypes.as_dtype(name)
    x, y = np.array(values, name), np.array(values[::-1], name)
    y[y == 0] = 7

    def pair():
        return holder(dtype, [None], "x"), holder(dtype, [None], "y")

    def arithmetic():
        x, y = pair()
        return [raw.AddV2(x=x, y=y), raw.Sub(x=x, y=y), raw.Mul(x=x, y=y), raw.Div(x=x, y=y), raw.FloorDiv(x=x, y=y),
                raw.TruncateDiv(x=x, y=y), raw.FloorMod(x=x, y=y), raw.Maximum(x=x, y=y), raw.Minimum(x=x, y=y),
                raw.Square(x=x), raw.AddN(inputs=[x, y, x])]

    def comparisons():
        x, y = pair()
        ops = raw.Equal, raw.NotEqual, raw.Less, raw.LessEqual, raw.Greater, raw.GreaterEqual
        return [op(x=x, y=y) for op in ops]

    def bits():
        x, y = pair()
        return [raw.BitwiseAnd(x=x, y=y), raw.BitwiseOr(x=x, y=y), raw.BitwiseXor(x=x, y=y), raw.Invert(x=x),
                raw.PopulationCount(x=x), raw.LeftShift(x=x, y=y % 8), raw.RightShift(x=x, y=y % 8)]

    def casts():
        x, _ = pair()
        small = raw.Minimum(x=x, y=tf.constant(100, dtype))
        integers = (tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64, tf.bool)
        floats = (tf.float32, tf.float64, tf.float16, tf.bfloat16, tf.complex64)
        return [tf.cast(small, t) for t in floats + integers] + [
            tf.cast(tf.identity(x), t) for t in (tf.float32, tf.float64, tf.complex128) + integers if t != dtype] + [
            tf.cast(tf.constant(a), dtype) for a in (f32([0, 1.75, 200]), f64([0, 1.25, 40000]), i64([-1, 5, -70000]),
                                                     np.array([True, False]))]

    def sums():
        x, y = pair()
        both = tf.stack([x, y])
        return [tf.reduce_sum(both, 0), tf.reduce_max(both, 1), tf.reduce_min(both, 0), tf.reduce_prod(both % 5, 1),
                tf.reduce_mean(both % 100, 1), tf.argmax(both, 1), tf.argmin(both, 1), raw.Cumsum(x=x, axis=0),
                tf.math.segment_sum(x, [0, 0, 1, 1, 1, 2]), tf.math.segment_max(x, [0, 0, 1, 1, 1, 2]),
                tf.math.unsorted_segment_min(y, [2, 0, 1, 1, 0, 2], 3), raw.TopKV2(input=x, k=2)[0], tf.nn.relu(x)]

    def places():
        x, y = pair()
        table = tf.reshape(x, [2, 3])
        return [tf.gather(x, [5, 0, 4]), tf.concat([x, y], 0), tf.reverse(x, [0]), table[1:, ::2], tf.transpose(table),
                tf.pad(table, [[1, 0], [0, 1]]), tf.where(x > y, x, y), tf.where(x),
                raw.OneHot(indices=[1, 2], depth=3, on_value=x[4], off_value=x[1]), tf.ones_like(x), tf.zeros_like(x),
                raw.Unique(x=tf.concat([x, y], 0))[0], raw.ListDiff(x=x, y=x[:2])[0],
                tf.scatter_nd([[1], [1], [4]], x[3:], [6]),
                tf.fill([2], x[5]), raw.ReverseV2(tensor=x, axis=[0]), tf.linalg.band_part(table, 0, 1),
                *tf.split(x, 2), *tf.unstack(table), raw.BroadcastTo(input=x[4:5], shape=[3])]

    def texts():
        x, _ = pair()
        small = tf.constant(values[:4], dtype)
        return [tf.as_string(x), tf.as_string(small, width=4, fill="0"), tf.io.serialize_tensor(x),
                tf.io.parse_tensor(tf.io.serialize_tensor(x), dtype)]

    for build in (arithmetic, comparisons, bits, casts, sums, places, texts):
        feeds = {"x": x, "y": y}
        program("%s_%s" % (name, build.__name__), build, feeds)

    def kept():
        v = tf.Variable(np.array(values, name), dtype=dtype, name="v", use_resource=True)
        old = tf.Variable(np.array(values, name), dtype=dtype, name="old", use_resource=False)
        with tf.control_dependencies([v.assign_add(np.array([1] * 6, name)), old.assign_sub(np.array([1] * 6, name))]):
            with tf.control_dependencies([tf.scatter_add(old, [1, 1], np.array([5, 6], name))]):
                return [v.read_value(), tf.identity(old)]

    program(name + "_kept", kept, {}, init=True)

program(
    "unsigned_bits",
    lambda: [tf.bitcast(holder(tf.int64, [2], "h"), tf.uint64), tf.bitcast(holder(tf.uint32, [2], "i"), tf.float32),
             tf.bitcast(holder(tf.uint16, [4], "j"), tf.uint8),
             tf.cast(tf.bitcast(holder(tf.int64, [2], "h2"), tf.uint64) % tf.constant(1000, tf.uint64), tf.int64)],
    {"h": i64([-1, 7]), "i": np.array([0x3FC00000, 0xC0000000], np.uint32),
     "j": np.array([1, 0x1234, 65535, 0], np.uint16), "h2": i64([-1, -2**62])},
)
program(
    "unsigned_raw",
    lambda: (lambda texts: [tf.decode_raw(texts, t) for t in (tf.uint16, tf.complex64, tf.bfloat16)] +
             [tf.decode_raw(holder(tf.string, [None], "b"), tf.uint16, little_endian=False)])(
                 holder(tf.string, [None], "t")),
    {"t": words("abcdefgh", "\x01\x00\x02\x00\x03\x00\x04\x00"), "b": words("\x01\x02")},
)
program(
    "unsigned_sets",
    lambda: list(raw.DenseToDenseSetOperation(set1=holder(tf.uint16, [1, 3], "x"), set2=holder(tf.uint16, [1, 2], "y"),
                                              set_operation="intersection")),
    {"x": np.array([[60000, 2, 7]], np.uint16), "y": np.array([[7, 60000]], np.uint16)},
)
image = np.random.default_rng(3).integers(0, 65536, (3, 4, 3)).astype(np.uint16)
for channels in (1, 2, 3, 4):
    part = np.concatenate([image, image[..., :1]], -1)[..., :channels]
    with tf.Graph().as_default(), tf.Session() as session:
        png = session.run(raw.EncodePng(image=part))
        small = session.run(raw.EncodePng(image=(part >> 8).astype(np.uint8)))
    program(
        "png_of_16_bits_%d" % channels,
        lambda: (lambda f, x: [
            raw.DecodePng(contents=f, channels=c, dtype=t) for c in (0, 1, 3, 4) for t in (tf.uint16, tf.uint8)] + [
            raw.DecodeImage(contents=f, channels=c, dtype=t) for c in (0, 3)
            for t in (tf.uint16, tf.uint8, tf.float32)] + [
            raw.DecodePng(contents=raw.EncodePng(image=x), dtype=tf.uint16)])(
                holder(tf.string, [], "f"), holder(tf.uint16, [None, None, channels], "x")),
        {"f": np.array(png, object), "x": part},
        {"f": np.array(small, object), "x": part},
    )

# ---- complex linear algebra ----


def complex_eighths(*shape, dtype=np.complex128):
    return (eighths(*shape) + 1j * eighths(*shape)).astype(dtype)


def hermitian(n, *batch):
    a = complex_eighths(*batch, n, n)
    return a + np.conj(np.swapaxes(a, -1, -2)) + 2 * np.diag(np.arange(n))


def values_of(a, dtype):
    return np.asarray(a).astype(dtype.as_numpy_dtype)


for dtype in (tf.complex64, tf.complex128):
    a = values_of(complex_eighths(2, 4, 4) + 3 * np.eye(4), dtype)
    b = values_of(complex_eighths(2, 4, 3), dtype)
    tall = values_of(complex_eighths(2, 5, 3), dtype)
    h = values_of(hermitian(4, 2), dtype)
    positive = values_of(np.matmul(a, np.conj(np.swapaxes(a, -1, -2))), dtype)
    here = "complex_%d_" % (dtype.size * 8)
    name = lambda: holder(dtype, [2, None, None], "a")
    program(here + "inverse", lambda: (lambda x: [
        raw.MatrixInverse(input=x), raw.MatrixInverse(input=x, adjoint=True), raw.MatrixDeterminant(input=x),
        *raw.LogMatrixDeterminant(input=x)])(name()), {"a": a})
    program(here + "solve", lambda: (lambda x, y: [
        raw.MatrixSolve(matrix=x, rhs=y, adjoint=t) for t in (False, True)] + [
        raw.MatrixTriangularSolve(matrix=x, rhs=y, lower=l, adjoint=t) for l in (False, True) for t in (False, True)])(
            name(), holder(dtype, [2, None, None], "b")), {"a": a, "b": b})
    program(here + "cholesky", lambda: [raw.Cholesky(input=name())], {"a": positive})

    def eigen():
        x = name()
        e, v = tf.linalg.eigh(x)
        return [e, tf.matmul(v * tf.expand_dims(e, -2), v, adjoint_b=True), tf.matmul(v, v, adjoint_a=True),
                tf.linalg.eigvalsh(x)]

    program(here + "eigen", eigen, {"a": h})

    def svd(full):
        x = name()
        s, u, v = raw.Svd(input=x, full_matrices=full)
        p = 3
        return [s, tf.matmul(u[..., :p] * tf.expand_dims(s, -2), v[..., :p], adjoint_b=True),
                tf.matmul(u, u, adjoint_a=True), tf.matmul(v, v, adjoint_a=True), raw.Svd(input=x, compute_uv=False)[0]]

    for full in (False, True):
        program(here + "svd_%d" % full, lambda: svd(full), {"a": tall},
                {"a": np.conj(np.swapaxes(tall, -1, -2)).copy()})
        program(here + "qr_%d" % full, lambda: list(raw.Qr(input=name(), full_matrices=full)), {"a": tall}, {"a": a},
                {"a": np.swapaxes(tall, -1, -2).copy()})

    def least():
        x, y = name(), holder(dtype, [2, None, None], "b")
        return [raw.MatrixSolveLs(matrix=x, rhs=y, l2_regularizer=tf.constant(r, tf.float64), fast=f)
                for r, f in ((0.5, True), (0.0, False))]

    program(here + "least_squares", least, {"a": tall, "b": values_of(complex_eighths(2, 5, 2), dtype)},
            {"a": np.swapaxes(tall, -1, -2).copy(), "b": values_of(complex_eighths(2, 3, 2), dtype)})

for dtype in (tf.float32, tf.float64):
    tall = eighths(2, 5, 3, dtype=dtype.as_numpy_dtype)
    program("least_squares_" + dtype.name, lambda: [
        raw.MatrixSolveLs(matrix=holder(dtype, [2, None, None], "a"), rhs=holder(dtype, [2, None, None], "b"),
                          l2_regularizer=tf.constant(0.25, tf.float64), fast=True)],
            {"a": tall, "b": eighths(2, 5, 2, dtype=dtype.as_numpy_dtype)},
            {"a": np.swapaxes(tall, -1, -2).copy(), "b": eighths(2, 3, 2, dtype=dtype.as_numpy_dtype)})
low = np.array([[1, 2, 3], [2, 4, 6], [1, 0, 1]], np.float64)
program("least_squares_of_low_rank", lambda: [
    raw.MatrixSolveLs(matrix=holder(tf.float64, [None, None], "a"), rhs=holder(tf.float64, [None, None], "b"),
                      l2_regularizer=tf.constant(0.0, tf.float64), fast=False)],
        {"a": low, "b": f64([[1], [2], [3]])}, {"a": np.zeros((2, 3)), "b": f64([[1], [2]])})

# of complex numbers, the gradient of the real part of a loss that no phase changes


def differentiate_complex(name, f, a):
    def build():
        x = holder(tf.complex128, list(a.shape), "x")
        y = f(x)
        real = tf.reduce_sum(tf.math.real(y) * tf.math.real(y) + 0.5 * tf.math.imag(y))
        return x, tf.sqrt(tf.cast(real, tf.complex128))
    differentiate("grad_" + name, build, {"x": a.astype(np.complex128)})


a = complex_eighths(4, 4) + 3 * np.eye(4)
tall, wide = complex_eighths(4, 3), complex_eighths(2, 4)


def projected(v):
    """What no phase of its columns changes."""
    weights = np.arange(1.0, int(v.shape[-1]) + 1)
    return tf.matmul(v * tf.constant(weights, tf.complex128), v, adjoint_b=True)


def eigen_loss(x):
    e, v = tf.linalg.eigh(tf.matmul(x, x, adjoint_b=True) + tf.constant(np.diag([0.0, 1, 3, 6]), tf.complex128))
    return projected(v) + tf.linalg.diag(e)


def svd_loss(x):
    s, u, v = raw.Svd(input=x)
    s = tf.cast(s, tf.complex128)
    weights = tf.constant(np.arange(1.0, int(s.shape[-1]) + 1), tf.complex128)
    both = tf.matmul(u * weights, v, adjoint_b=True)
    return tf.concat([s] + [tf.reshape(y, [-1]) for y in (projected(u), projected(v), both)], 0)


differentiate_complex("complex_inverse", lambda x: raw.MatrixInverse(input=x, adjoint=True), a)
differentiate_complex("complex_solve", lambda x: raw.MatrixSolve(matrix=x, rhs=x * x, adjoint=True), a)
differentiate_complex("complex_triangular", lambda x: raw.MatrixTriangularSolve(matrix=x, rhs=x * x, lower=False), a)
differentiate_complex("complex_cholesky", lambda x: raw.Cholesky(input=tf.matmul(x, x, adjoint_b=True)), a)
differentiate_complex("complex_eigen", eigen_loss, a)
differentiate_complex("complex_qr", lambda x: tf.concat([tf.reshape(y, [-1]) for y in raw.Qr(input=x)], 0), a)
differentiate_complex("complex_qr_tall", lambda x: tf.concat([tf.reshape(y, [-1]) for y in raw.Qr(input=x)], 0), tall)
for n, x in (("square", a), ("tall", tall), ("wide", wide)):
    differentiate_complex("complex_svd_" + n, svd_loss, x)
for n, x in (("tall", tall), ("wide", wide)):
    differentiate_complex("complex_least_squares_" + n, lambda x: raw.MatrixSolveLs(
        matrix=x, rhs=x * x, l2_regularizer=tf.constant(0.5, tf.float64)), x)
for n, x in (("tall", eighths(4, 2)), ("wide", eighths(2, 3))):
    def build():
        y = holder(tf.float32, list(x.shape), "x")
        return y, raw.MatrixSolveLs(matrix=y, rhs=y * y, l2_regularizer=tf.constant(0.5, tf.float64))
    differentiate("grad_least_squares_" + n, build, {"x": x})


def eigenvalues():
    y = holder(tf.float32, [3, 3], "x")
    return y, tf.linalg.eigvalsh(y)


differentiate("grad_eigenvalues", eigenvalues, {"x": eighths(3, 3)})

# ---- barriers ----


def barrier():
    b = raw.Barrier(component_types=[tf.float32, tf.string], shapes=[[2], []], shared_name="b")
    keys = holder(tf.string, [None], "k")
    types = [tf.float32, tf.string]
    taken = raw.BarrierTakeMany(handle=b, num_elements=holder(tf.int32, [], "n"), component_types=types)
    few = raw.BarrierTakeMany(handle=b, num_elements=holder(tf.int32, [], "m"), component_types=types,
                              allow_small_batch=True)
    put = raw.BarrierInsertMany
    return {
        "first": [put(handle=b, keys=keys, values=holder(tf.float32, [None, 2], "x"), component_index=0)],
        "second": [put(handle=b, keys=keys, values=holder(tf.string, [None], "t"), component_index=1)],
        "sizes": [raw.BarrierReadySize(handle=b), raw.BarrierIncompleteSize(handle=b)],
        "take": [taken.indices, taken.keys, *taken.values],
        "few": [few.indices, few.keys, *few.values],
        "close": [raw.BarrierClose(handle=b)],
    }


program(
    "barrier", barrier,
    ({"k": words("a", "b", "c", "d"), "x": eighths(4, 2)}, "first"),
    ({}, "sizes"),
    ({"k": words("d", "b", "a"), "t": words("of d", "of b", "of a")}, "second"),
    ({}, "sizes"),
    ({"n": np.int32(2)}, "take"),
    ({"k": words("e"), "t": words("of e")}, "second"),
    ({}, "sizes"),
    ({}, "close"),
    ({"k": words("c"), "t": words("of c")}, "second"),
    ({"m": np.int32(5)}, "few"),
    ({}, "sizes"),
    ({"k": words("e"), "x": eighths(1, 2)}, "first"),
    ({"n": np.int32(1)}, "take"),
)
for name, runs in (("new_key", [({}, "close"), ({"k": words("a"), "x": eighths(1, 2)}, "first", "brand new key")]),
                   ("given_twice", [({"k": words("a"), "x": eighths(1, 2)}, "first"),
                                    ({"k": words("a"), "x": eighths(1, 2)}, "first", "already has a value")]),
                   ("closed_twice", [({}, "close"), ({}, "close", "already closed")]),
                   ("too_few", [({"k": words("a"), "x": eighths(1, 2)}, "first"), ({}, "close"),
                                ({"n": np.int32(2)}, "take", "insufficient elements")])):
    program("barrier_" + name, barrier, *runs)

# ---- tables whose values are vectors ----


def vectors(dense):
    if dense:
        t = raw.MutableDenseHashTableV2(empty_key=tf.constant(-1, tf.int64), deleted_key=tf.constant(-2, tf.int64),
                                        value_dtype=tf.float32, value_shape=[3], shared_name="t")
    else:
        t = raw.MutableHashTableOfTensorsV2(key_dtype=tf.int64, value_dtype=tf.float32, value_shape=[3],
                                            shared_name="t")
    keys, values = holder(tf.int64, None, "k"), holder(tf.float32, None, "v")
    exported = raw.LookupTableExportV2(table_handle=t, Tkeys=tf.int64, Tvalues=tf.float32)
    order = tf.argsort(exported.keys)
    return {
        "put": [raw.LookupTableInsertV2(table_handle=t, keys=keys, values=values)],
        "find": [raw.LookupTableFindV2(table_handle=t, keys=keys, default_value=f32([7, 8, 9]))],
        "remove": [raw.LookupTableRemoveV2(table_handle=t, keys=keys)],
        "all": [raw.LookupTableSizeV2(table_handle=t)] + ([] if dense else [  # places that are free are given there, too
            tf.gather(exported.keys, order), tf.gather(exported.values, order)]),
    }


for dense in (False, True):
    program(
        "vectors_by_key_%d" % dense, lambda: vectors(dense),
        ({"k": i64([3, 1, 4]), "v": eighths(3, 3)}, "put"),
        ({"k": i64([1, 2, 4, 3])}, "find"),
        ({"k": i64([1, 5]), "v": eighths(2, 3)}, "put"),
        ({}, "all"),
        ({"k": i64([3, 9])}, "remove"),
        ({"k": i64([3, 1, 5])}, "find"),
        ({}, "all"),
    )

# ---- optimizers of complex numbers ----

for dtype in (tf.complex64, tf.complex128):
    number = lambda x: tf.constant(x, dtype)
    gradient = values_of(complex_eighths(5), dtype)

    def updates(resource):
        def kept(name, x):
            return tf.Variable(values_of(x, dtype), dtype=dtype, name=name, use_resource=resource)
        start = complex_eighths(5)
        v = [kept("v%d" % i, start) for i in range(5)]
        s = [kept("s%d" % i, 0.25 + np.abs(complex_eighths(5))) for i in range(5)]
        g = holder(dtype, [5], "g")
        op = lambda name: getattr(raw, ("Resource" if resource else "") + name)
        where = (lambda x: x.handle) if resource else (lambda x: x._ref())
        updated = [
            op("ApplyGradientDescent")(var=where(v[0]), alpha=number(0.5 + 0.25j), delta=g),
            op("ApplyMomentum")(var=where(v[1]), accum=where(s[0]), lr=number(0.5), grad=g, momentum=number(0.75)),
            op("ApplyMomentum")(var=where(v[2]), accum=where(s[1]), lr=number(0.5), grad=g, momentum=number(0.75),
                                use_nesterov=True),
            op("ApplyAdam")(var=where(v[3]), m=where(s[2]), v=where(s[3]), beta1_power=number(0.9),
                            beta2_power=number(0.99), lr=number(0.5), beta1=number(0.9), beta2=number(0.99),
                            epsilon=number(0.125), grad=g),
            op("ApplyRMSProp")(var=where(v[4]), ms=where(s[4]), mom=where(kept("m", np.zeros(5))), lr=number(0.5),
                               rho=number(0.9), momentum=number(0.5), epsilon=number(0.125), grad=g),
        ]
        with tf.control_dependencies(updated):
            return [x.read_value() if resource else tf.identity(x) for x in v + s]

    for resource in (False, True):
        program("updates_%s_%d" % (dtype.name, resource), lambda: updates(resource), {"g": gradient},
                {"g": gradient * 1j}, init=True)

# ---- sparse tensors of complex numbers ----

for dtype in (tf.complex64, tf.complex128):
    for shape, transposed in (((4, 2), False), ((2, 4), True)):
        for adjoint in (False, True):
            program(
                "sparse_%s_%d_%d" % (dtype.name, adjoint, transposed),
                lambda: [raw.SparseTensorDenseMatMul(
                    a_indices=i64([[0, 1], [2, 3], [1, 0]]), a_values=holder(dtype, [3], "a"), a_shape=i64([4, 4]),
                    b=holder(dtype, shape, "b"), adjoint_a=adjoint, adjoint_b=transposed)],
                {"a": values_of(complex_eighths(3), dtype), "b": values_of(complex_eighths(*shape), dtype)},
            )
    program(
        "sparse_sum_" + dtype.name,
        lambda: [raw.SparseTensorDenseAdd(a_indices=i64([[0, 1], [2, 1], [0, 1]]), a_values=holder(dtype, [3], "a"),
                                          a_shape=i64([3, 2]), b=holder(dtype, [3, 2], "b"))],
        {"a": values_of(complex_eighths(3), dtype), "b": values_of(complex_eighths(3, 2), dtype)},
    )
