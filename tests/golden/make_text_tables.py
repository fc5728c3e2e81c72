#!/usr/bin/env python3
"""Writes text_tables.txt: tables that are filled from text files, by TensorFlow. A case is a line:

    KEY_TYPE VALUE_TYPE key_index value_index vocab_size offset DELIMITER FILE ENTRY...

DELIMITER, FILE and texts in hexadecimal after an x; ENTRY is KEY=VALUE, in the order of keys; "fails" if TensorFlow refuses."""
import os
import tempfile

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

TYPES = {"string": tf.string, "int64": tf.int64, "int32": tf.int32, "float": tf.float32, "double": tf.float64}
WHOLE, NUMBER = -2, -1
CASES = [
    ("string", "int64", WHOLE, NUMBER, -1, 0, "\t", "emerson\nlake\npalmer\n"),
    ("string", "int64", WHOLE, NUMBER, -1, 0, "\t", "emerson\nlake\npalmer"),
    ("string", "int64", WHOLE, NUMBER, 2, 0, "\t", "emerson\nlake\npalmer\n"),
    ("string", "int64", WHOLE, NUMBER, 3, 0, "\t", "emerson\nlake\npalmer\n"),
    ("string", "int64", WHOLE, NUMBER, 4, 0, "\t", "emerson\nlake\npalmer\n"),
    ("string", "int64", WHOLE, NUMBER, -1, 1, "\t", "head\nlake\npalmer\n"),
    ("string", "int64", WHOLE, NUMBER, -1, 7, "\t", "head\nlake\npalmer\n"),
    ("string", "int64", WHOLE, NUMBER, -1, 0, "\t", "a\r\nb\r\n"),
    ("string", "int64", WHOLE, NUMBER, -1, 0, "\t", "a\n\nb\n"),
    ("string", "int64", WHOLE, NUMBER, -1, 0, "\t", ""),
    ("string", "int64", WHOLE, NUMBER, -1, 0, "\t", "a\nb\na\n"),
    ("string", "int64", 0, 1, -1, 0, "\t", "a\t1\nb\t-2\n"),
    ("string", "int64", 0, 1, -1, 0, "\t", "a\t1\na\t1\n"),
    ("string", "int64", 0, 1, -1, 0, "\t", "a\t1\na\t2\n"),
    ("string", "int64", 0, 1, -1, 0, ",", "a,1,more\nb,2\n"),
    ("string", "int64", 0, 2, -1, 0, ",", "a,1,3\nb,2\n"),
    ("string", "int64", 0, 1, -1, 0, ",", "a,1x\n"),
    ("string", "int64", 0, 1, -1, 0, ",", "a, 1\n"),
    ("string", "int64", 0, 1, -1, 0, ",", "a,\n"),
    ("string", "int64", 0, 1, -1, 0, ",", "a,1.5\n"),
    ("string", "int64", 0, 1, -1, 0, ",", "a,9223372036854775808\n"),
    ("string", "float", 0, 1, -1, 0, ",", "a,1.5\nb,-2e1\n"),
    ("string", "double", 0, 1, -1, 0, ",", "a,1.5\nb,0.1\n"),
    ("string", "float", 0, 1, -1, 0, ",", "a,x\n"),
    ("string", "int32", 0, 1, -1, 0, ",", "a,7\n"),
    ("string", "string", 1, 0, -1, 0, " ", "one uno\ntwo due\n"),
    ("int64", "string", NUMBER, WHOLE, -1, 0, "\t", "zero\none\n"),
    ("int64", "string", 0, 1, -1, 1, "\t", "id\tname\n5\tfive\n3\tthree\n"),
    ("int64", "int64", NUMBER, 0, -1, 0, ",", "10,x\n20,y\n"),
]


def text(value):
    return "x" + (value if isinstance(value, bytes) else value.encode()).hex()


def number(value):
    return text(value) if isinstance(value, bytes) else "%.9g" % value if isinstance(value, float) else str(value)


def fill(case, path):
    key, value, key_index, value_index, size, offset, delimiter, _ = case
    table = tf.raw_ops.HashTableV2(key_dtype=TYPES[key], value_dtype=TYPES[value], shared_name=path)
    tf.raw_ops.InitializeTableFromTextFileV2(table_handle=table, filename=path, key_index=key_index,
                                             value_index=value_index, vocab_size=size, delimiter=delimiter, offset=offset)
    keys, values = tf.raw_ops.LookupTableExportV2(table_handle=table, Tkeys=TYPES[key], Tvalues=TYPES[value])
    return sorted(zip(keys.numpy().tolist(), values.numpy().tolist()))


with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "text_tables.txt"), "w") as out, \
        tempfile.TemporaryDirectory() as folder:
    out.write("# Made by make_text_tables.py with TensorFlow %s.\n" % tf.__version__)
    for i, case in enumerate(CASES):
        path = os.path.join(folder, "%d.txt" % i)
        with open(path, "w", newline="") as file:
            file.write(case[7])
        try:
            entries = ["%s=%s" % (number(k), number(v)) for k, v in fill(case, path)]
        except tf.errors.OpError as error:
            print(i, case, error.message[:150])
            entries = ["fails"]
        except (ValueError, TypeError) as error:
            print(i, case, str(error)[:150])
            entries = ["fails"]
        words = [str(word) for word in case[:6]] + [text(case[6]), text(case[7])] + entries
        out.write(" ".join(words) + "\n")
