#!/usr/bin/env python3
"""Writes quantized.txt: ops on numbers that stand for steps of a range, and a small network of them as TensorFlow 1's
quantize_nodes made it of a frozen graph, in small programs exported and run by TensorFlow, for tests/test_shapes.c."""

from graph_cases import begin, eighths, holder, np, program, random, raw, reseed, tf
from op_cases import f32, i32

begin("quantized.txt", __file__, 1)

# Golden files know plain integers; TensorFlow's Bitcast makes them what they stand for.
PLAIN = {tf.qint8: tf.int8, tf.quint8: tf.uint8, tf.qint16: tf.int16, tf.quint16: tf.uint16, tf.qint32: tf.int32}


def steps(dtype, shape, name):
    return raw.Bitcast(input=holder(PLAIN[dtype], shape, name), type=dtype)


def shown(results):
    """uint16 is no type of Tower's: shown as its bits."""
    plain = lambda t: tf.int16 if t.dtype == tf.quint16 else PLAIN.get(t.dtype)
    results = results if isinstance(results, (list, tuple)) else [results]
    return [raw.Bitcast(input=t, type=plain(t)) if t.dtype in PLAIN else t for t in results]


def drawn(dtype, *shape):
    plain = PLAIN[dtype].as_numpy_dtype
    info = np.iinfo(plain)
    some = random.integers(info.min, info.max + 1, shape).astype(plain)
    some.ravel()[:2] = info.min, info.max
    return some


def number(value):
    return tf.constant(value, tf.float32)


BYTE, WORD = tf.quint8, tf.qint32

# ---- to steps ----

x = np.concatenate([eighths(5, 3), f32([[9, -9, 0], [0.3, -1.7, 0.01], [1.5, 2.5, -0.5]])])
for dtype in (tf.qint8, BYTE, tf.qint16, tf.quint16, WORD):
    for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
        for how in ((), ("even",), ("narrow",), ("axis",)):
            if (how == ("axis",) and mode == "MIN_FIRST") or (how in (("even",), ("narrow",)) and mode != "SCALED"):
                continue
            axis = how == ("axis",)

            def quantized():
                low = holder(tf.float32, [3] if axis else [], "low")
                high = holder(tf.float32, [3] if axis else [], "high")
                return shown(
                    raw.QuantizeV2(
                        input=holder(tf.float32, [None, 3], "x"), min_range=low, max_range=high, T=dtype, mode=mode,
                        round_mode="HALF_TO_EVEN" if how == ("even",) else "HALF_AWAY_FROM_ZERO",
                        narrow_range=how == ("narrow",), axis=1 if axis else -1)
                )

            of = lambda low, high: {
                "x": np.clip(x, -1e9, 1.9) if dtype == WORD else x,
                "low": f32([low, low - 1, low / 2] if axis else low),
                "high": f32([high, high + 1, high / 2] if axis else high),
            }
            runs = [of(-2, 4 if dtype == WORD else 2), of(-1.3, 9), of(0.5, 4), of(0, 0)]
            runs += [] if axis else [(of(2, 1), "input_max_range")]
            program("quantize_%s_%s" % (dtype.name, "_".join((mode.lower(),) + how)), quantized, *runs)

# ---- from steps ----

for dtype in (tf.qint8, BYTE, tf.qint16, WORD):
    for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
        for how in ("", "narrow", "axis", "bfloat16"):
            if (how == "axis" and mode == "MIN_FIRST") or (how == "bfloat16" and mode != "MIN_COMBINED"):
                continue
            axis = how == "axis"
            values = [drawn(dtype, 4, 3)]
            values += [{"low": low, "high": high} for low, high in ((-3.0, 5.0), (0.25, 2.0), (-6, 0))]

            def back():
                y = raw.Dequantize(
                    input=steps(dtype, [None, 3], "x"), min_range=holder(tf.float32, [3] if axis else [], "low"),
                    max_range=holder(tf.float32, [3] if axis else [], "high"), mode=mode,
                    narrow_range=how == "narrow", axis=1 if axis else -1,
                    dtype=tf.bfloat16 if how == "bfloat16" else tf.float32)
                return [tf.cast(y, tf.float32)]

            each = lambda v: f32([v, 2 * v, v / 2] if axis else v)
            program("dequantize_%s_%s_%s" % (dtype.name, mode.lower(), how), back,
                    *[{"x": values[0], **{k: each(v) for k, v in range_.items()}} for range_ in values[1:]])

# ---- into another range ----

sums = np.concatenate([random.integers(-90000, 90000, 20), [0, 1, -1, 123456]]).astype(np.int32).reshape(4, 6)
wide = np.concatenate([drawn(WORD, 10), [0, 1, -1]]).astype(np.int32)
ranges = [(-4000.0, 4000.0), (-70.5, 30.25), (0.0, 5e5)]


def with_range(op, dtype, **attrs):
    return lambda: shown(list(op(input=steps(dtype, None, "x"), input_min=holder(tf.float32, [], "low"),
                                 input_max=holder(tf.float32, [], "high"), **attrs)))


some = [{"x": x, "low": f32(low), "high": f32(high)} for x in (sums, wide, 0 * sums) for low, high in ranges]
program("used_range", with_range(raw.RequantizationRange, WORD), *some)
program("shrink_range", with_range(raw.QuantizeDownAndShrinkRange, WORD, out_type=BYTE), *some)
for dtype in (BYTE, tf.qint8):
    program(
        "requantize_" + dtype.name,
        lambda: shown(list(raw.Requantize(
            input=steps(WORD, None, "x"), input_min=holder(tf.float32, [], "low"),
            input_max=holder(tf.float32, [], "high"), requested_output_min=holder(tf.float32, [], "to_low"),
            requested_output_max=holder(tf.float32, [], "to_high"), out_type=dtype))),
        *[{**s, "to_low": f32(low), "to_high": f32(high)}
          for s in some for low, high in ((-0.2, 0.15), (-900, 20), (0, 3))],
        ({**some[0], "to_low": f32(1), "to_high": f32(2)}, "requested_output_min must be <= 0"),
    )

# ---- sums of products ----

reseed(2)
for ta in (False, True):
    for tb in (False, True):
        a, b = drawn(BYTE, *((5, 3) if ta else (3, 5))), drawn(BYTE, *((4, 5) if tb else (5, 4)))
        limits = lambda *v: dict(zip(("la", "ha", "lb", "hb"), map(f32, v)))

        def product():
            la, ha, lb, hb = (holder(tf.float32, [], n) for n in ("la", "ha", "lb", "hb"))
            return shown(list(raw.QuantizedMatMul(
                a=steps(BYTE, [None, None], "a"), b=steps(BYTE, [None, None], "b"), min_a=la, max_a=ha, min_b=lb,
                max_b=hb, Toutput=WORD, transpose_a=ta, transpose_b=tb)))

        program("product_%d_%d" % (ta, tb), product,
                {"a": a, "b": b, **limits(-1, 1, -0.3, 2)}, {"a": a, "b": b, **limits(0, 6, 0.5, 2)},
                {"a": a, "b": b, **limits(-6, -2, -3, 0)},
                ({"a": a, "b": b, **limits(1, 1, -3, 0)}, "max_a must be larger than min_a"))

for filter_type in (BYTE,):  # the kernel that is there for qint8 does nothing
    for padding in ("SAME", "VALID"):
        for stride in (1, 2, 3):
            image, kernel = drawn(BYTE, 2, 7, 6, 3), drawn(filter_type, 3, 2, 3, 4)

            def convolved():
                la, ha, lb, hb = (holder(tf.float32, [], n) for n in ("la", "ha", "lb", "hb"))
                return shown(list(raw.QuantizedConv2D(
                    input=steps(BYTE, [None, None, None, 3], "x"), filter=steps(filter_type, [3, 2, 3, 4], "w"),
                    min_input=la, max_input=ha, min_filter=lb, max_filter=hb, out_type=WORD,
                    strides=[1, stride, stride, 1], padding=padding)))

            program("convolution_%s_%s_%d" % (filter_type.name, padding.lower(), stride), convolved,
                    {"x": image, "w": kernel, **limits(0, 6, -0.5, 0.25)},
                    {"x": image, "w": kernel, **limits(-1, 1, -0.5, 2)},
                    {"x": image, "w": kernel, **limits(1, 3, 0.5, 2)})

# ---- element by element ----

for dtype in (BYTE, tf.qint8):
    def biased():
        la, ha, lb, hb = (holder(tf.float32, [], n) for n in ("la", "ha", "lb", "hb"))
        return shown(list(raw.QuantizedBiasAdd(
            input=steps(dtype, [None, None, 5], "x"), bias=steps(dtype, [5], "b"), min_input=la, max_input=ha,
            min_bias=lb, max_bias=hb, out_type=WORD)))

    given = {"x": drawn(dtype, 2, 3, 5), "b": drawn(dtype, 5)}
    program("bias_" + dtype.name, biased, {**given, **limits(-1, 1, -0.3, 2)}, {**given, **limits(0, 6, 0.5, 20)},
            {**given, **limits(-7, 0, -1, 1)})

for op in (raw.QuantizedAdd, raw.QuantizedMul):
    for i, (one, two) in enumerate([((3, 4), (3, 4)), ((), (3, 4)), ((3, 4), (1,)), ((2, 3, 4), (4,)), ((4,), (2, 4))]):
        def combined():
            la, ha, lb, hb = (holder(tf.float32, [], n) for n in ("la", "ha", "lb", "hb"))
            return shown(list(op(x=steps(BYTE, list(one), "x"), y=steps(BYTE, list(two), "y"), min_x=la, max_x=ha,
                                 min_y=lb, max_y=hb, Toutput=WORD)))

        full = lambda shape: drawn(BYTE, *shape) if shape else np.uint8(200)
        given = {"x": full(one), "y": full(two) if two != (1,) else np.array([9], np.uint8)}
        program("%s_%d" % (op.__name__, i), combined, {**given, **limits(-1, 1, -0.3, 2)},
                {**given, **limits(0, 6, 0.5, 20)}, {**given, **limits(-7, 0, -1, 1)},
                ({**given, **limits(0, 6, 2, 1)}, "must be larger than"))

for op in (raw.QuantizedRelu, raw.QuantizedRelu6):
    for dtype in (BYTE, WORD):
        program(
            "%s_%s" % (op.__name__, dtype.name),
            lambda: shown(list(op(features=steps(dtype, None, "x"), min_features=holder(tf.float32, [], "low"),
                                  max_features=holder(tf.float32, [], "high"), out_type=dtype))),
            *[{"x": drawn(dtype, 4, 5), "low": f32(low), "high": f32(high)}
              for low, high in ((-3, 9), (0, 6), (-1, -0.5), (1, 12), (2, 2))],
        )

for op in (raw.QuantizedMaxPool, raw.QuantizedAvgPool):
    for dtype in (BYTE, tf.qint8):
        for padding in ("SAME", "VALID"):
            program(
                "%s_%s_%s" % (op.__name__, dtype.name, padding.lower()),
                lambda: shown(list(op(input=steps(dtype, [None, None, None, 3], "x"),
                                      min_input=holder(tf.float32, [], "low"),
                                      max_input=holder(tf.float32, [], "high"),
                                      ksize=[1, 3, 2, 1], strides=[1, 2, 2, 1], padding=padding))),
                {"x": drawn(dtype, 2, 6, 5, 3), "low": f32(-1), "high": f32(3)},
                {"x": drawn(dtype, 1, 7, 7, 3), "low": f32(0), "high": f32(0.5)},
            )

for dtype in (BYTE, WORD):
    program(
        "reshape_" + dtype.name,
        lambda: shown(list(raw.QuantizedReshape(
            tensor=steps(dtype, None, "x"), shape=holder(tf.int32, [None], "n"),
            input_min=holder(tf.float32, [], "low"), input_max=holder(tf.float32, [], "high")))),
        {"x": drawn(dtype, 4, 3), "n": i32([2, -1]), "low": f32(-1), "high": f32(3)},
        {"x": drawn(dtype, 4, 3), "n": i32([12]), "low": f32(0), "high": f32(3)},
    )

    def joined():
        names = ("a", "b", "c")
        return shown(list(raw.QuantizedConcat(
            concat_dim=holder(tf.int32, [], "axis"), values=[steps(dtype, [None, None], n) for n in names],
            input_mins=[holder(tf.float32, [], "l" + n) for n in names],
            input_maxes=[holder(tf.float32, [], "h" + n) for n in names])))

    def parts(axis, *values):
        shapes = [(2, 3), (2, 3), (2, 3)]
        shapes = [(s[0] + i, s[1]) if axis == 0 else (s[0], s[1] + i) for i, s in enumerate(shapes)]
        feeds = {"axis": i32(axis)}
        for name, shape, (low, high) in zip("abc", shapes, values):
            feeds.update({name: drawn(dtype, *shape), "l" + name: f32(low), "h" + name: f32(high)})
        return feeds

    program("join_" + dtype.name, joined, parts(0, (-1, 1), (-1, 1), (-1, 1)), parts(1, (-1, 2), (0, 4), (-0.25, 0.25)),
            parts(0, (1, 2), (3, 4), (1, 4)), parts(1, (-4, -2), (-3, -1), (-4, -1)))

# ---- a network as quantize_nodes made it: floats are quantized, and sums put into bytes again ----

reseed(3)


def weights(name, value):
    """A constant in bytes, with the least and the largest element of what it was."""
    low, high = min(0.0, float(value.min())), max(0.0, float(value.max()))
    bytes_ = np.round((value - low) / (high - low) * 255).astype(np.uint8)
    return raw.Bitcast(input=tf.constant(bytes_, name=name), type=BYTE), number(low), number(high)


def to_bytes(x):
    flat = tf.reshape(x, [-1])
    return raw.QuantizeV2(input=x, min_range=tf.reduce_min(flat), max_range=tf.reduce_max(flat), T=BYTE,
                          mode="MIN_FIRST")


def down(results):
    """Sums in 32 bits, into bytes of the range that they use."""
    low, high = raw.RequantizationRange(input=results[0], input_min=results[1], input_max=results[2])
    return raw.Requantize(input=results[0], input_min=results[1], input_max=results[2], requested_output_min=low,
                          requested_output_max=high, out_type=BYTE)


def network():
    x, low, high = to_bytes(holder(tf.float32, [None, 12, 12, 3], "x"))
    w, w_low, w_high = weights("w1", random.normal(0, 0.3, (3, 3, 3, 8)))
    x, low, high = down(raw.QuantizedConv2D(input=x, filter=w, min_input=low, max_input=high, min_filter=w_low,
                                            max_filter=w_high, out_type=WORD, strides=[1, 1, 1, 1], padding="SAME"))
    b, b_low, b_high = weights("b1", random.normal(0, 0.3, 8))
    x, low, high = down(raw.QuantizedBiasAdd(input=x, bias=b, min_input=low, max_input=high, min_bias=b_low,
                                             max_bias=b_high, out_type=WORD))
    x, low, high = raw.QuantizedRelu(features=x, min_features=low, max_features=high, out_type=BYTE)
    pool = dict(min_input=low, max_input=high, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
    one, two = raw.QuantizedMaxPool(input=x, **pool), raw.QuantizedAvgPool(input=x, **pool)
    x, low, high = raw.QuantizedConcat(concat_dim=3, values=[one[0], two[0]], input_mins=[one[1], two[1]],
                                       input_maxes=[one[2], two[2]])
    x, low, high = raw.QuantizedReshape(tensor=x, shape=[-1, 6 * 6 * 16], input_min=low, input_max=high)
    w, w_low, w_high = weights("w2", random.normal(0, 0.1, (6 * 6 * 16, 10)))
    results = raw.QuantizedMatMul(a=x, b=w, min_a=low, max_a=high, min_b=w_low, max_b=w_high, Toutput=WORD)
    x, low, high = raw.QuantizeDownAndShrinkRange(input=results[0], input_min=results[1], input_max=results[2],
                                                  out_type=BYTE)
    b, b_low, b_high = weights("b2", random.normal(0, 0.3, 10))
    x, low, high = down(raw.QuantizedBiasAdd(input=x, bias=b, min_input=low, max_input=high, min_bias=b_low,
                                             max_bias=b_high, out_type=WORD))
    logits = raw.Dequantize(input=x, min_range=low, max_range=high, mode="MIN_FIRST")
    return [logits, tf.nn.softmax(logits)]


program("network", network, {"x": eighths(4, 12, 12, 3)}, {"x": eighths(1, 12, 12, 3)})
