"""Tower's C interface, as much of it as running a GraphDef takes.

    tower = Tower("build/libtower.so")
    with tower.graph(graph_def_bytes) as graph:
        session = graph.session(plain=True, threads=3)
        values = session.run(["n:0"], {"x:0": array})
        dx = graph.gradients(["n:0"], ["dy:0"], ["x:0"])
    TowerError has .code, TensorFlow's number.
"""
import ctypes
import os
from ctypes import POINTER, Structure, byref, c_bool, c_char, c_char_p, c_double, c_int, c_int64, c_size_t, c_void_p

import ml_dtypes
import numpy as np

DTYPES = {1: np.float32, 2: np.float64, 3: np.int32, 4: np.uint8, 5: np.int16, 6: np.int8, 9: np.int64, 10: np.bool_,
          14: ml_dtypes.bfloat16, 19: np.float16, 8: np.complex64, 18: np.complex128, 17: np.uint16, 22: np.uint32,
          23: np.uint64}
NUMBERS = {np.dtype(t): n for n, t in DTYPES.items()}
STRING = 7
MAX_RANK = 12


class Error(Structure):
    _fields_ = [("status", c_int), ("message", c_char * 2048)]


class Shape(Structure):
    _fields_ = [("rank", c_int), ("dims", c_int64 * MAX_RANK)]


class Output(Structure):
    _fields_ = [("node", c_void_p), ("index", c_int)]


class Feed(Structure):
    _fields_ = [("output", Output), ("tensor", c_void_p)]


class String(Structure):
    _fields_ = [("data", c_void_p), ("size", c_size_t)]


class SessionOptions(Structure):
    _fields_ = [("size", c_size_t), ("devices", c_void_p), ("allow_soft_placement", c_bool), ("soft_choice", c_int),
                ("soft_budget", c_int64), ("log_device_placement", c_bool), ("placement_log", c_void_p),
                ("placement_log_user", c_void_p), ("disable", c_char_p), ("plain_kernels", c_bool), ("trace", c_bool)]


class DeviceOptions(Structure):
    _fields_ = [("size", c_size_t), ("cpu_devices", c_int), ("cpu_threads", c_int), ("virtual_gpus", c_int),
                ("virtual_gpu_memory", c_size_t), ("gpu_memory_limit", c_size_t), ("gpu_memory_fraction", c_double),
                ("allow_growth", c_bool), ("logical_gpus", c_int), ("tf32", c_bool), ("fast", c_bool),
                ("no_gpus", c_bool), ("collective_timeout", c_double)]


class TowerError(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Tower:
    def __init__(self, path):
        # libraries that TensorFlow has, too (RE2, protobuf), in versions of its own, are not to be mixed up
        self.lib = ctypes.CDLL(path, os.RTLD_NOW | os.RTLD_LOCAL | os.RTLD_DEEPBIND)
        for name, result, arguments in (
                ("tw_graph_create", c_void_p, []), ("tw_graph_destroy", None, [c_void_p]),
                ("tw_graph_import", c_int, [c_void_p, c_char_p, c_size_t, c_char_p, POINTER(Error)]),
                ("tw_graph_status", c_int, [c_void_p]), ("tw_graph_message", c_char_p, [c_void_p]),
                ("tw_graph_find", c_void_p, [c_void_p, c_char_p]), ("tw_node_num_outputs", c_int, [c_void_p]),
                ("tw_node_is_unknown", c_bool, [c_void_p]),
                ("tw_gradients", None, [c_void_p, POINTER(Output), c_int, POINTER(Output), POINTER(Output), c_int,
                                        POINTER(Output)]),
                ("tw_devices_create", c_int, [POINTER(DeviceOptions), POINTER(c_void_p), POINTER(Error)]),
                ("tw_session_create", c_int, [c_void_p, POINTER(SessionOptions), POINTER(c_void_p), POINTER(Error)]),
                ("tw_session_destroy", None, [c_void_p]),
                ("tw_session_run", c_int, [c_void_p, POINTER(Feed), c_int, POINTER(Output), c_int, POINTER(c_void_p),
                                           POINTER(Error)]),
                ("tw_tensor_create", c_void_p, [c_int, Shape]), ("tw_tensor_release", None, [c_void_p]),
                ("tw_tensor_dtype", c_int, [c_void_p]), ("tw_tensor_shape", Shape, [c_void_p]),
                ("tw_tensor_elements", c_int64, [c_void_p]), ("tw_tensor_bytes", c_size_t, [c_void_p]),
                ("tw_tensor_data", c_void_p, [c_void_p]),
                ("tw_tensor_set_string", c_int, [c_void_p, c_int64, c_char_p, c_size_t])):
            function = getattr(self.lib, name)
            function.restype, function.argtypes = result, arguments
        self.devices = {}

    def check(self, status, error):
        if status:
            raise TowerError(status, error.message.decode(errors="replace"))

    def device_set(self, threads, gpus):
        if (threads, gpus) not in self.devices:
            options, devices, error = DeviceOptions(), c_void_p(), Error()
            options.size, options.cpu_threads, options.no_gpus = ctypes.sizeof(options), threads, True
            options.virtual_gpus = gpus
            self.check(self.lib.tw_devices_create(byref(options), byref(devices), byref(error)), error)
            self.devices[threads, gpus] = devices
        return self.devices[threads, gpus]

    def graph(self, definition):
        return Graph(self, definition)

    def tensor(self, value):
        value = np.asarray(value)
        is_string = value.dtype.kind in "OSU"
        shape = Shape(value.ndim, (c_int64 * MAX_RANK)(*value.shape))
        tensor = self.lib.tw_tensor_create(STRING if is_string else NUMBERS[value.dtype], shape)
        if is_string:
            for i, text in enumerate(value.ravel()):
                text = text if isinstance(text, bytes) else str(text).encode()
                self.lib.tw_tensor_set_string(tensor, i, text, len(text))
        elif value.size:
            value = np.ascontiguousarray(value)
            ctypes.memmove(self.lib.tw_tensor_data(tensor), value.ctypes.data, value.nbytes)
        return tensor

    def array(self, tensor):
        shape, dtype = self.lib.tw_tensor_shape(tensor), self.lib.tw_tensor_dtype(tensor)
        dims, data = tuple(shape.dims[: shape.rank]), self.lib.tw_tensor_data(tensor)
        if dtype == STRING:
            strings = ctypes.cast(data, POINTER(String))
            count = self.lib.tw_tensor_elements(tensor)
            values = [ctypes.string_at(strings[i].data, strings[i].size) if strings[i].size else b""
                      for i in range(count)]
            array = np.empty(len(values), object)
            array[:] = values
            return array.reshape(dims)
        array = np.empty(dims, DTYPES[dtype])
        if array.size:
            ctypes.memmove(array.ctypes.data, data, array.nbytes)
        return array


class Graph:
    def __init__(self, tower, definition):
        self.tower, self.sessions = tower, []
        self.graph, error = tower.lib.tw_graph_create(), Error()
        status = tower.lib.tw_graph_import(self.graph, definition, len(definition), None, byref(error))
        if status:
            self.close()
        tower.check(status, error)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for session in self.sessions:
            self.tower.lib.tw_session_destroy(session)
        self.tower.lib.tw_graph_destroy(self.graph)
        self.sessions, self.graph = [], None

    def output(self, name):
        """"node:1", or "node" to run a node without its values."""
        node, _, index = name.partition(":")
        found = self.tower.lib.tw_graph_find(self.graph, node.encode())
        if not found:
            raise KeyError(name)
        return Output(found, int(index) if index else -1)

    def is_known(self, name):
        return not self.tower.lib.tw_node_is_unknown(self.output(name).node)

    def outputs(self, names):
        return (Output * max(1, len(names)))(*[self.output(name) for name in names])

    def gradients(self, ys, dys, xs):
        """The outputs that are dL/dx; None where none flows."""
        results = (Output * max(1, len(xs)))()
        self.tower.lib.tw_gradients(self.graph, self.outputs(ys), len(ys), self.outputs(dys), self.outputs(xs),
                                    len(xs), results)
        status = self.tower.lib.tw_graph_status(self.graph)
        if status:
            raise TowerError(status, self.tower.lib.tw_graph_message(self.graph).decode(errors="replace"))
        return [Output(r.node, r.index) if r.node else None for r in results[: len(xs)]]

    def session(self, plain=False, threads=1, disable=None, gpus=0, soft=False):
        options, session, error = SessionOptions(), c_void_p(), Error()
        options.size, options.plain_kernels, options.allow_soft_placement = ctypes.sizeof(options), plain, soft
        options.devices = self.tower.device_set(threads, gpus)
        options.disable = disable.encode() if disable else None
        status = self.tower.lib.tw_session_create(self.graph, byref(options), byref(session), byref(error))
        self.tower.check(status, error)
        self.sessions.append(session)
        return Session(self, session)


class Session:
    def __init__(self, graph, session):
        self.graph, self.tower, self.session = graph, graph.tower, session

    def run(self, fetches, feeds):
        lib, error = self.tower.lib, Error()
        outputs = [self.graph.output(f) if isinstance(f, str) else f for f in fetches]
        tensors = [self.tower.tensor(value) for value in feeds.values()]
        given = (Feed * max(1, len(feeds)))(*[Feed(self.graph.output(name), tensor)
                                              for name, tensor in zip(feeds, tensors)])
        results = (c_void_p * max(1, len(outputs)))()
        status = lib.tw_session_run(self.session, given, len(feeds), (Output * max(1, len(outputs)))(*outputs),
                                    len(outputs), results, byref(error))
        for tensor in tensors:
            lib.tw_tensor_release(tensor)
        self.tower.check(status, error)
        values = [self.tower.array(r) if r else None for r in results[: len(outputs)]]
        for r in results[: len(outputs)]:
            lib.tw_tensor_release(r)
        return values
