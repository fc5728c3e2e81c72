#!/usr/bin/env python3
"""Small inputs to begin with, for each target: corpus/TARGET/seed-*. Those named otherwise were found by fuzzing, and stay.

usage: tests/fuzz/make_corpus.py"""
import gzip, io, os, shutil, struct, tarfile, zlib

here = os.path.dirname(os.path.abspath(__file__))
golden = os.path.join(here, '..', 'golden')


def seed(target, name, *parts):
    folder = os.path.join(here, 'corpus', target)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, 'seed-' + name), 'wb') as file:
        for part in parts:
            file.write(part if isinstance(part, bytes) else part.encode())


def read(*names):
    with open(os.path.join(golden, *names), 'rb') as file:
        return file.read()


def part(data):
    return struct.pack('<H', len(data)) + data


def varint(n):
    out = b''
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value & (1 << 64) - 1)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def attr(key, value):
    return field(5, field(1, key) + field(2, value))


def node(name, op, *inputs, attrs=b'', device=''):
    return field(1, field(1, name) + field(2, op) + b''.join(field(3, i) for i in inputs) +
                 (field(4, device) if device else b'') + attrs)


def kind(key, number):
    return attr(key, field(6, number))


def constant(name, number, data, dims=()):
    shape = b''.join(field(2, field(1, d)) for d in dims)
    tensor = field(1, number) + field(2, shape) + field(4, data)
    return node(name, 'Const', attrs=kind('dtype', number) + attr('value', field(8, tensor)))


FLOAT, INT32, BOOL = 1, 3, 10
one, yes = constant('one', FLOAT, struct.pack('<f', 1)), constant('yes', BOOL, b'\1')
T = kind('T', FLOAT)


def frame(name, of, which):
    return node(name, 'Enter', of, attrs=T + attr('frame_name', field(2, which)))


# What no program builds: circles, frames that cross, sides that do not meet, functions that call themselves.
hostile = {
    'circle': one + node('a', 'AddN', 'b', 'one', attrs=T + attr('N', field(3, 2))) + node('b', 'Identity', 'a', attrs=T),
    'itself': node('a', 'Identity', 'a', attrs=T),
    'merge-of-itself': one + node('m', 'Merge', 'm', 'one', attrs=T + attr('N', field(3, 2))),
    'merge-of-nothing': node('m', 'Merge', attrs=T + attr('N', field(3, 0))),
    'merge-without-switch': one + node('m', 'Merge', 'one', 'one', attrs=T + attr('N', field(3, 2))),
    'switch-of-float': one + node('s', 'Switch', 'one', 'one', attrs=T),
    'both-sides': one + yes + node('s', 'Switch', 'one', 'yes', attrs=T) +
                  node('a', 'AddN', 's', 's:1', attrs=T + attr('N', field(3, 2))),
    'third-side': one + yes + node('s', 'Switch', 'one', 'yes', attrs=T) + node('a', 'Identity', 's:2', attrs=T),
    'exit-alone': one + node('e', 'Exit', 'one', attrs=T),
    'enter-alone': one + frame('e', 'one', 'f'),
    'enters-twice': one + frame('e', 'one', 'f') + frame('g', 'e', 'f') + node('x', 'Exit', 'g', attrs=T),
    'frames-cross': one + frame('a', 'one', 'f') + frame('b', 'one', 'g') +
                    node('c', 'AddN', 'a', 'b', attrs=T + attr('N', field(3, 2))) + node('x', 'Exit', 'c', attrs=T),
    'for-ever': one + yes + frame('e', 'one', 'f') + frame('p', 'yes', 'f') +
                node('m', 'Merge', 'e', 'n', attrs=T + attr('N', field(3, 2))) + node('l', 'LoopCond', 'p') +
                node('s', 'Switch', 'm', 'l', attrs=T) + node('n', 'NextIteration', 's:1', attrs=T) +
                node('x', 'Exit', 's', attrs=T),
    'next-of-itself': node('n', 'NextIteration', 'n', attrs=T),
    'control-circle': one + node('a', 'Identity', 'one', '^b', attrs=T) + node('b', 'Identity', 'a', attrs=T),
    'unknown-op': one + node('u', 'NoSuchOp', 'one', 'u:7') + node('v', 'Identity', 'u', attrs=T),
    'calls-itself': node('c', 'f', attrs=b'') +
                    field(2, field(1, field(1, field(1, 'f') + field(3, field(1, 'y') + field(3, FLOAT))) +
                                   field(3, field(1, 'c') + field(2, 'f')) + field(4, field(1, 'y') + field(2, 'c:y:0')))),
    'while-of-none': one + node('w', 'While', 'one', attrs=attr('T', field(1, field(6, bytes([FLOAT])))) +
                                attr('cond', field(10, field(1, 'no'))) + attr('body', field(10, field(1, 'no')))),
    'if-of-none': one + yes + node('i', 'If', 'yes', 'one', attrs=attr('then_branch', field(10, field(1, 'no')))),
    'huge-shape': constant('c', FLOAT, b'', (1 << 40, 1 << 40)),
    'negative-shape': constant('c', FLOAT, b'', (-3, 2)),
    'empty-shape': constant('c', FLOAT, b'', (1 << 40, 0)) + node('n', 'Neg', 'c', attrs=T),
    'rank-nine': constant('c', FLOAT, struct.pack('<f', 1), (1,) * 9),
    'huge-fill': constant('d', INT32, struct.pack('<2i', 2147483647, 2147483647), (2,)) + one +
                 node('f', 'Fill', 'd', 'one', attrs=T + kind('index_type', INT32)),
    'deep-expression': one + b''.join(node('n%d' % i, 'Identity', 'n%d' % (i - 1) if i else 'one', attrs=T)
                                      for i in range(300)),
}

flows = ['asserts', 'assigns_references', 'dead_fetch', 'known_predicates', 'passes_on', 'same_predicate_inside', 'simple',
         'types', 'missing_variable']


def make():
    for name, graph in hostile.items():
        for target in 'graph', 'run':
            seed(target, 'hostile-' + name, graph)
        seed('meta_graph', 'hostile-' + name, field(2, graph))
    for name in flows:
        for target in 'graph', 'run':
            seed(target, name, read('flow', name + '.pb'))
    seed('meta_graph', 'parts', read('files', 'parts.meta'))
    seed('graph_file', 'pb', b'\0', read('flow', 'simple.pb'))
    seed('graph_file', 'pbtxt', b'\1', 'node { name: "a" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } '
         'attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } } float_val: 1.5 } } } }\n'
         'node { name: "b" op: "Neg" input: "a" attr { key: "T" value { type: DT_FLOAT } } }\n')
    seed('graph_file', 'meta', b'\2', read('files', 'parts.meta'))
    seed('graph_file', 'saved_model', b'\3', field(2, field(2, read('flow', 'simple.pb'))))
    seed('graph_file', 'saved_model_text', b'\4', 'saved_model_schema_version: 1 meta_graphs { graph_def { node { name: "a" '
         'op: "NoOp" } } meta_info_def { tags: "serve" } }')
    seed('graph_file', 'events', b'\5', read('events'))
    for name in 'checkpoint_foreign', 'files/parts':
        index, data = read(name + '.index'), read(name + '.data-00000-of-00001')
        seed('checkpoint', os.path.basename(name), part(index), data[:3000])
        seed('table', os.path.basename(name), index)
    seed('state', 'usual', 'model_checkpoint_path: "model.ckpt-2"\nall_model_checkpoint_paths: "model.ckpt-1"\n'
         'all_model_checkpoint_paths: "model.ckpt-2"\n')
    seed('snappy', 'literal', b'\5\x10hello')
    seed('snappy', 'copy', b'\x0a\x04ab\x1d\x02\x00\x00')
    seed('records', 'events', read('events'))

    def idx(shape, data):
        return struct.pack('>HBB', 0, 8, len(shape)) + struct.pack('>%dI' % len(shape), *shape) + data
    files = [idx((2, 28, 28), bytes(1568)), idx((2,), b'\1\2')]
    seed('idx', 'plain', b'\0', *[part(f) for f in files * 2])
    seed('idx', 'zipped', b'\1', *[part(gzip.compress(f, mtime=0)) for f in files * 2])
    seed('cifar', 'two', (b'\3' + bytes(3072)) * 2)
    seed('list', 'usual', 'file,label\na.png,cat\n"b, c.png",dog\n')

    def npy(header, data=b'', version=1):
        header = header.encode()
        header += b' ' * (-(len(header) + 11) % 64) + b'\n'
        length = struct.pack('<H' if version == 1 else '<I', len(header))
        return b'\x93NUMPY' + bytes([version, 0]) + length + header + data
    seed('npy', 'images', npy("{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2, 2), }", bytes(8)))
    seed('npy', 'floats', npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", bytes(24), 2))
    seed('npy', 'huge', npy("{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 4), }"))

    def png(width, height, colour, rows):
        def chunk(name, data):
            return struct.pack('>I', len(data)) + name + data + struct.pack('>I', zlib.crc32(name + data))
        head = struct.pack('>IIBBBBB', width, height, 8, colour, 0, 0, 0)
        return b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', head) + chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b'')
    seed('image', 'png', png(2, 2, 2, (b'\0' + bytes(6)) * 2))
    seed('image', 'png-alpha', png(1, 3, 6, (b'\0' + bytes(4)) * 3))
    seed('image', 'png-bomb', png(16384, 6000, 0, bytes(1000)))
    seed('image', 'png-huge', png(0x7fffffff, 0x7fffffff, 6, b''))
    seed('image', 'jpeg', bytes.fromhex(
        'ffd8ffe000104a46494600010100000100010000ffdb004300' + '01' * 64 + 'ffc0000b080001000101011100'
        'ffc40014000100000000000000000000000000000009ffc40014100100000000000000000000000000000000ffda0008010100003f0054'
        'dfffd9'))

    def tar(members):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode='w') as archive:
            for name, data, link in members:
                info = tarfile.TarInfo(name)
                info.size = len(data)
                if link:
                    info.type, info.linkname = tarfile.SYMTYPE, link
                archive.addfile(info, io.BytesIO(data))
        return out.getvalue().rstrip(b'\0') + bytes(1024)
    good = tar([('set/data_batch_1.bin', bytes(16), ''), ('set/test_batch.bin', bytes(16), '')])
    seed('archive', 'plain', good)
    seed('archive', 'zipped', gzip.compress(good, mtime=0))
    seed('archive', 'climbs', tar([('../../data_batch_1.bin', bytes(16), ''), ('/test_batch.bin', bytes(16), '')]))
    seed('archive', 'link', tar([('set/data_batch_1.bin', b'', '/etc/passwd'), ('set/test_batch.bin', bytes(9), '')]))
    seed('order_log', 'usual', 'tower order 1\nmodel cifar10 towers 4 batch 32 seed 1 first 0\n'
         '0 tower 2 pulled 0 batch 0 loss 0x1.2b4f7ap+2\n1 tower 0 pulled 0 batch 1 loss 0x1.2ac03p+2\n')
    seed('device', 'full', '/job:worker/replica:0/task:1/device:GPU:0\n/gpu:1\n')
    seed('device', 'uuid', 'gpu:GPU-8a7e\n/device:CPU:*\n')
    seed('specs', 'usual', 'ring\npscpu:32k:xring#2\n1000 64 0,500:-\n- 0,1\n')
    seed('options', 'train', 'train\ncifar10\n--max-steps\n10\n--lr=0.1\n--virtual-gpu-memory\n1.5G\n')
    seed('options', 'run', 'run\ngraph.pb\n--fetch\nx:0\n--format=json\n')
    seed('config', 'usual', 'model = cifar10\nmax-steps = 10\n; a word\n[part]\nlr = 0.1\n')
    seed('run_file', 'usual', '{"format": 1, "model": "cifar10", "options": {"max-steps": "10", "lr": "0.1"}, "sessions": []}')
    whole = 'HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n' + 'x' * 64
    rest = 'HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 16-63/64\r\nContent-Length: 48\r\n\r\n' + 'x' * 48
    seed('http', 'whole', b'\0', part(whole.encode()))
    seed('http', 'rest', b'\x10', part(rest.encode()))
    seed('http', 'elsewhere', b'\0', part(b'HTTP/1.1 302 Found\r\nLocation: http://example.com/file\r\n\r\n'), part(whole.encode()))
    seed('http', 'no-range', b'\x10', part(b'HTTP/1.1 416 Range Not Satisfiable\r\n\r\n'), part(whole.encode()))
    seed('http', 'chunked', b'\0', part(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n' + b'x' * 64 + b'\r\n0\r\n\r\n'))
    seed('algorithms', 'usual', 'conv:f32:1,2,3 3 17 00000000deadbeef 1200\nmatmul:f32:8 0 -1 0000000000000000 0\n')
    seed('text', 'usual', 'node { name: "a" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }\n'
         '  attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 1.5 } } } } # a word\n')
    feature = lambda key, number, values: field(1, field(1, key) + field(2, field(number, values)))
    seed('example', 'usual', field(1, feature('label', 3, field(1, b'\x01\x05')) + feature('image', 1, field(1, 'bytes')) +
                                   feature('weight', 2, field(1, struct.pack('<2f', 1, 2)))))
    seed('events', 'usual', read('events'))
    seed('report', 'usual', part(b'{"model": "cifar10", "options": {"lr": "0.1"}, "data_set": {"name": "synthetic"}, "sessions": []}'),
         part(b'{"step": 1, "examples": 8, "towers": ["/device:GPU:0"], "nodes": [["a", "Const", "/device:CPU:0", null, 4, 4, -1, []],'
              b' ["tower_0/b", "Relu", "/device:GPU:0", "plain", 1, 16, 0, [0]]], "reasons": ["it is there"], "kinds": ["compute"],'
              b' "spans": [[1, 0, 0.5, 1.5]], "waterfall": {"compute": 1}, "memory": [{"device": "/device:GPU:0", "items": [["buffer",'
              b' "b", "Relu", 64]], "others": 0}]}'),
         part(b'{"step": 5, "precision_at_1": 0.5, "classes": []}\n'), part(read('events')))
    for target in 'ops', 'calls': # numbers, of which any are as good
        for i in range(6):
            data, state = bytearray(), i + 1
            for _ in range(160):
                state = (state * 6364136223846793005 + 1442695040888963407) & (1 << 64) - 1
                data.append(state >> 33 & 255)
            seed(target, str(i), bytes(data))


def words(target, *texts):
    with open(os.path.join(here, 'words', target), 'w') as file:
        for text in texts:
            file.write('"%s"\n' % ''.join(c if c.isascii() and c.isalnum() or c in ' _-./:=[]{},' else '\\x%02x' % ord(c) for c in text))


def make_words():
    types = ['DT_FLOAT', 'DT_INT32', 'DT_STRING', 'DT_RESOURCE', 'DT_BOOL']
    ops = ['Const', 'Switch', 'Merge', 'Enter', 'Exit', 'NextIteration', 'LoopCond', 'Identity', 'Reshape', 'Fill', 'While',
           'If', 'StatelessIf', 'StatelessWhile', 'PartitionedCall', 'Where', 'Unique', 'Range', 'Shape', 'VariableV2',
           'Assign', 'VarHandleOp', 'AddN', 'MatMul', 'T', 'N', 'dtype', 'value', 'shape', 'frame_name', '_output_shapes',
           '_class', 'loc:@', '/gpu:0', '^', ':1']
    for target in 'graph', 'meta_graph', 'run':
        words(target, *ops)
    words('graph_file', *ops, *types, 'node', 'name', 'attr', 'key', 'tensor_shape', 'dim', 'size', 'meta_graphs')
    words('npy', "'descr'", "'fortran_order'", "'shape'", '<f4', '|u1', '<i8', '>f8', 'True', 'False', '(', ',)')
    words('image', 'IHDR', 'IDAT', 'PLTE', 'tRNS', 'IEND', '\xff\xc0', '\xff\xc2', '\xff\xc4', '\xff\xda', '\xff\xdb')
    words('order_log', 'tower order 1', 'model', 'towers', 'batch', 'seed', 'first', 'pulled', 'loss', '0x1.8p+1', 'nan')
    words('device', '/job:', '/replica:', '/task:', '/device:', '/gpu:', '/cpu:', 'GPU', 'CPU', '*', 'GPU-')
    words('specs', 'ring', 'xring', 'pscpu', 'psgpu', 'nccl', 'collective', 'rechd', 'pairwise', ':', '#', '32k', '-', '0,1')
    words('options', 'train', 'bench', 'eval', 'run', 'plan', 'why', 'show', 'data', 'fetch', 'checkpoint', '--lr', '--format',
          '--max-steps', '--virtual-gpus', '--virtual-gpu-memory', '=on', '1e99', '512M', '--')
    words('config', 'model', 'max-steps', 'lr', 'towers', ' = ', '[', ']', ';')
    words('run_file', 'format', 'model', 'options', 'sessions', 'data_set', 'directory', 'decided', '1e999')
    words('state', 'model_checkpoint_path: ', 'all_model_checkpoint_paths: ', 'model.ckpt-1')
    words('http', 'HTTP/1.1 ', '200 OK', '206 Partial Content', '301', '302', '416', '503', '\r\n', '\r\n\r\n', 'Location: ',
          'http://', 'https://', 'file:///', 'Content-Length: ', 'Content-Range: bytes ', 'Transfer-Encoding: chunked',
          'Content-Encoding: gzip', 'Connection: close', 'Set-Cookie: ', 'WWW-Authenticate: Basic')
    words('algorithms', ' 0', ' -1', '\n', '00000000deadbeef', '9223372036854775807', ' 2147483648')
    words('text', *ops, *types, 'node', 'name', 'attr', 'key', 'value', 'tensor', 'tensor_shape', 'dim', 'size', 'float_val', ': ',
          ' {', ' }', '<', '>', '[', ']', '"', "'", '\\', '#', 'nan', '-inf', '0x1')
    words('report', '"nodes"', '"groups"', '"devices"', '"spans"', '"edges"', '"step"', '"precision_at_1"', '"confusion"',
          '"data_set"', '"directory"', 'null', '1e999', '[', ']', '{', '}', ',')
    words('list', 'file,label', 'train', '.png', '..', '/')


if __name__ == '__main__':
    os.makedirs(os.path.join(here, 'words'), exist_ok=True)
    make()
    make_words()
