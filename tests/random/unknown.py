#!/usr/bin/env python3
"""Lists the ops of TensorFlow's registry that Tower does not know, a family a line.

usage: unknown.py [--library FILE] [--all]

An old name whose "V2" is known and works on resources counts as known, for graphs are read so. Without --all, what
programs of TensorFlow 1.15 on CPUs and GPUs do not hold is left out: ops of TPUs, of XLA, of compilers' own, of tests, and
those that came later.
"""
import argparse
import ctypes
import os
import re

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from tensorflow.core.framework import op_def_pb2, types_pb2
from tensorflow.python.client import pywrap_tf_session

from tower import Tower

ELSEWHERE = re.compile(
    # made while a graph is rewritten or compiled, and for other hardware
    r"^_|TPU|Tpu|Xla|Tensor(RT|Forest)|TRT|Mkl|Feed(En|De)queue|Prelineari|Collective|Nccl|Debug|SparseCore|DedupData"
    r"|Minibatch|Dtensor|DTensor|Relayout|CopyToMesh|MeshGrad|Quantized\w*(With|And)|PerChannel|^Fused(Pad|Resize)|CudnnRNN"
    # of TensorFlow 2, and after 1.15
    r"|^Anonymous|Uniform\w*uantize|V[45]Grad|DataService|^Rng|Stateful(Uniform|Standard|Truncated|RandomBinomial)"
    r"|Get(Key|Alg)|RandomGetAlg|CSRSparse|^SparseMatrix|^Ragged(Fill|Cross|Bincount|Count)|^TensorMap|^EmptyTensorMap|^Risc"
    r"|SeedGenerator|^Bessel[JYK]|Fresnel|^Spence|^Dawsn|^Expint|CompositeTensor|WeakResource|ApproxTopK|^MapDefun|^(Un)?Batch$"
    r"|^Experimental|Snapshot|Unc?ompressElement|^CompressElement|GlobalShuffle|IndexFlatMap|WeightedFlatMap|^Distributed"
    r"|^(Save|Load|List|Register)Dataset|DatasetFingerprint|Namespace"
    # of TensorFlow's own tests
    r"|^(Attr|NIn|NPoly|Two|In(t|Poly)|Float|Out(T|Type)|TypeList|Ref(In|Out)|Poly|Foo|Kernel|Reserved|Func|Stub|Test|Old$"
    r"|[AB]$|None$|Simple|Mixed|ComplexStruct|Default|Non|Unary$|Binary$|Five|List(In|Out)|Op(With)|Requires|Restrict"
    r"|GraphDefVersion|Resource(Create|Initialized|Using)Op|Sleep|Device(Index|Placement)|Dtype|Construction|Int64Output)")


def registry():
    ops = op_def_pb2.OpList()
    ops.ParseFromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    return {op.name: op for op in ops.op}


def works_on_resources(op):
    return any(a.type == types_pb2.DT_RESOURCE for a in [*op.input_arg, *op.output_arg])


def is_known(lib, name):
    """A node of an op that is known fails for other reasons, or not at all."""
    graph = lib.tw_graph_create()
    lib.tw_add_node(graph, name.encode(), None, None, 0, None, 0)
    message = lib.tw_graph_message(graph)
    lib.tw_graph_destroy(graph)
    return b"not registered" not in message


def main():
    arguments = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    arguments.add_argument("--library", default="build/src/libtower.so")
    arguments.add_argument("--all", action="store_true")
    options = arguments.parse_args()
    lib = Tower(options.library).lib
    lib.tw_add_node.restype = ctypes.c_void_p
    lib.tw_add_node.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int,
                                ctypes.c_void_p, ctypes.c_int]
    ops = registry()
    known = {name for name in ops if is_known(lib, name)}
    renewed = {n for n in ops if n + "V2" in known and works_on_resources(ops[n + "V2"])}
    unknown = sorted(set(ops) - known - renewed)
    shown = [n for n in unknown if options.all or not ELSEWHERE.search(n)]
    families = {}
    for name in shown:
        families.setdefault(re.match(r"[A-Z]?[A-Z0-9]*[a-z_0-9]*", name).group(), []).append(name)
    for family in sorted(families):
        print(" ".join(families[family]))
    print("%d of %d ops are known; of the others %d are shown" % (len(ops) - len(unknown), len(ops), len(shown)))


if __name__ == "__main__":
    main()
