#!/usr/bin/env python3
"""compare_ops.py TOWERS_LIBRARY TENSORFLOWS_LIBRARY [all] - where the OpDefs of ops that both have differ.

Both libraries list their ops by TF_GetAllOpList(), each in a process of its own. A line is printed for every difference
of inputs, outputs, attributes (name, type, default, allowed values, minimum) and flags; those that are known not to
matter are counted by their reasons, or printed as well (all). Ends with 1 if there are others.
"""
import ctypes
import struct
import subprocess
import sys


class Buffer(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("length", ctypes.c_size_t), ("deallocator", ctypes.c_void_p)]


def print_list(library):
    get = ctypes.CDLL(library).TF_GetAllOpList
    get.restype = ctypes.POINTER(Buffer)
    found = get().contents
    sys.stdout.buffer.write(ctypes.string_at(found.data, found.length))


def fields(message):
    """[(number, value)] of a message: an int, or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    found = []
    while at < len(message):
        key = varint()
        if key & 7 == 0:
            found.append((key >> 3, varint()))
            continue
        size = {1: 8, 5: 4}.get(key & 7) or varint()
        found.append((key >> 3, message[at:at + size]))
        at += size
    return found


def every(message, number):
    return [value for n, value in fields(message) if n == number]


def one(message, number, otherwise=None):
    return (every(message, number) or [otherwise])[-1]


def text(message, number):
    return one(message, number, b"").decode()


TYPES = dict(enumerate("? float double int32 uint8 int16 int8 string complex64 int64 bool qint8 quint8 qint32 bfloat16 "
                       "qint16 quint16 uint16 complex128 half resource variant uint32 uint64".split()))


def varints(values):
    """Repeated numbers, packed or not."""
    return [v for value in values for v in (packed(value) if isinstance(value, bytes) else [value])]


def packed(data):
    numbers, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            numbers.append(value)
            value = shift = 0
    return numbers


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def floats(values):
    return [f for value in values for f in struct.unpack(f"<{len(value) // 4}f", value)]


def shape(message):
    if one(message, 3):
        return "<unknown>"
    return str([signed(one(dim, 1, 0)) for dim in every(message, 2)])


READERS = {  # by the number of the field in an AttrValue, and in its list
    2: lambda values: [repr(v.decode(errors="replace")) for v in values],
    3: lambda values: [str(signed(v)) for v in varints(values)],
    4: lambda values: [f"{f:.9g}" for f in floats(values)],
    5: lambda values: [str(bool(v)) for v in varints(values)],
    6: lambda values: [TYPES.get(v, str(v)) for v in varints(values)],
    7: lambda values: [shape(v) for v in values],
    8: lambda values: ["a tensor" for v in values],
    10: lambda values: ["a function" for v in values],
}


def values_of(message):
    return [t for number, read in READERS.items() for t in read(every(message, number))]


def attr_value(message):
    if message is None:
        return None
    lists = every(message, 1)
    return "[" + ", ".join(values_of(lists[0])) + "]" if lists else ", ".join(values_of(message))


def argument(message):
    kind = TYPES.get(one(message, 3, 0)) if one(message, 3) else text(message, 4) or text(message, 6)
    number = text(message, 5)
    reference = "Ref " if one(message, 16) else ""
    return f"{text(message, 1)}: {reference}{number + ' * ' if number else ''}{kind}"


def attribute(message):
    allowed = one(message, 7)
    lists = every(allowed, 1) if allowed is not None else []
    return {
        "type": text(message, 2),
        "default": attr_value(one(message, 3)),
        "allowed": sorted(values_of(lists[0])) if lists else None,
        "minimum": signed(one(message, 6, 0)) if one(message, 5) else None,
    }


def describe(op):
    """{what: value} of an OpDef."""
    found = {
        "inputs": [argument(a) for a in every(op, 2)],
        "outputs": [argument(a) for a in every(op, 3)],
        "attrs": sorted(text(a, 1) for a in every(op, 4)),
        "control outputs": len(every(op, 20)),
    }
    for name, number in (("is_stateful", 17), ("is_commutative", 18), ("is_aggregate", 16),
                         ("allows_uninitialized_input", 19)):
        found[name] = bool(one(op, number, 0))
    for attr in every(op, 4):
        for what, value in attribute(attr).items():
            found[f"attr {text(attr, 1)}, {what}"] = value
    return found


# Attributes that TensorFlow 2 has added: taken as long as they ask for nothing (src/io/graph_import.c).
ADDED = {"grad_a", "grad_b", "grad_x", "grad_y", "incompatible_shape_error", "exponential_avg_factor", "shape_type",
         "bad_indices_policy", "allow_missing_files"}


def handles(arguments):
    """What TensorFlow keeps in variants and references to texts are resources here."""
    for kind in ("variant", "Ref string", "* variant"):
        arguments = [a.replace(kind, kind.replace("variant", "resource").replace("Ref string", "resource"))
                     for a in arguments]
    return arguments


def of_newer(arguments):
    return [a.replace(": shape_type", ": int32").replace("* shape_type", "* int32") for a in arguments]


def allowed(ours, theirs):
    if ours is None or theirs is not None and set(ours) >= set(theirs):
        return "more values are allowed"
    if theirs is None or set(ours) <= set(theirs):
        return "fewer values are allowed"
    return "other values are allowed"


def expected(what, ours, theirs):
    """Why a difference is none that a graph can meet; None: it is one."""
    if what.endswith("minimum"):
        return "no row has the minimum; shape rules check" if ours is None else None
    if what.endswith("allowed"):
        return allowed(ours, theirs)
    if what.endswith("type") and (ours, theirs) == ("string", "func"):
        return "a function is a text: its name"
    if what.endswith("default") and (theirs is None or theirs == "a tensor"):
        return "what must be given may be left out; no row has a tensor by default"
    if what == "is_stateful":
        return "what has a handle, reads files, is fed or draws numbers is called stateful, or the other way round"
    if what in ("is_aggregate", "allows_uninitialized_input", "is_commutative"):
        return "flags that rows have not, or say of more ops"
    if what == "attrs" and set(theirs) - set(ours) <= ADDED:
        return "attributes added by TensorFlow 2 or by Tower, which may be left out"
    if what in ("inputs", "outputs"):
        return ("handles are resources" if ours == handles(theirs) else
                "types that TensorFlow 2 has made attributes" if ours == of_newer(theirs) else None)
    return None


def ops_of(library):
    listed = subprocess.run([sys.executable, __file__, library], check=True, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL).stdout
    return {text(op, 1): describe(op) for op in every(listed, 1)}


def main(towers, tensorflows, show_all):
    ours, theirs = ops_of(towers), ops_of(tensorflows)
    both = sorted(set(ours) & set(theirs))
    reasons, count = {}, 0
    for op in both:
        for what in ours[op]:
            if what not in theirs[op] or ours[op][what] == theirs[op][what]:
                continue
            reason = expected(what, ours[op][what], theirs[op][what])
            if reason:
                reasons[reason] = reasons.get(reason, 0) + 1
            if not reason or show_all:
                print(f"{op}: {what}: {ours[op][what]}, in TensorFlow {theirs[op][what]}")
            count += not reason
    print(f"{len(ours)} ops of Tower, {len(theirs)} of TensorFlow, {len(both)} of both: {count} differences")
    for reason, times in reasons.items():
        print(f"{times:4} more: {reason}")
    print("of Tower's alone:", ", ".join(sorted(set(ours) - set(theirs))))
    return count > 0


if len(sys.argv) == 2:
    print_list(sys.argv[1])
elif len(sys.argv) in (3, 4):
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:] == ["all"]))
else:
    sys.exit(__doc__)
