"""Writes files/: one small trained graph in each kind of file that holds graphs. Needs TensorFlow 2 and NumPy.

    cd tests/golden && python make_files.py
"""
import os
import shutil

import numpy
import tensorflow.compat.v1 as tf
from google.protobuf import text_format

tf.disable_v2_behavior()
shutil.rmtree("files", ignore_errors=True)
os.makedirs("files")

graph = tf.Graph()
with graph.as_default():
    tf.set_random_seed(7)
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    label = tf.placeholder(tf.string, [None], name="label")
    keep = tf.placeholder_with_default(1.0, [], name="keep")
    w = tf.get_variable("W", initializer=numpy.array([[1, -2], [0.5, 4], [3, 0.25]], numpy.float32), use_resource=False)
    b = tf.get_variable("b", initializer=numpy.array([0.125, -1], numpy.float32), use_resource=True)
    late = tf.Variable(w.initialized_value() * 2, trainable=False, name="late")
    step = tf.train.get_or_create_global_step()
    y = tf.identity(tf.matmul(x, w) * keep + b, name="y")
    named = tf.identity(label, name="named")
    loss = tf.reduce_mean(tf.square(y), name="loss")
    tf.summary.scalar("the_loss", loss)
    train = tf.train.GradientDescentOptimizer(0.125).minimize(loss, global_step=step, name="train")
    tf.add_to_collection(tf.GraphKeys.TRAIN_OP, train)
    saver = tf.train.Saver()

with tf.Session(graph=graph) as session:
    session.run(tf.global_variables_initializer())
    session.run(train, {x: [[1, 2, 3], [4, 5, 6]]})
    print("loss after a step:", repr(session.run(loss, {x: [[1, 2, 3], [4, 5, 6]]})))
    print("y after a step:", session.run(y, {x: [[1, 2, 3]]}).tolist())
    builder = tf.saved_model.Builder("files/saved_model")
    signature = tf.saved_model.build_signature_def(
        {"images": tf.saved_model.build_tensor_info(x), "names": tf.saved_model.build_tensor_info(label)},
        {"scores": tf.saved_model.build_tensor_info(y), "named": tf.saved_model.build_tensor_info(named)},
        tf.saved_model.PREDICT_METHOD_NAME)
    builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature})
    builder.save()
    shutil.copytree("files/saved_model", "files/saved_model_text")
    builder.save(as_text=True)
    shutil.move("files/saved_model/saved_model.pbtxt", "files/saved_model_text/saved_model.pbtxt")
    os.remove("files/saved_model_text/saved_model.pb")
with graph.as_default():
    saver.export_meta_graph("files/whole.meta")
    saver.export_meta_graph("files/whole.meta.pbtxt", as_text=True)
    with open("files/graph.pbtxt", "w") as file:
        file.write(text_format.MessageToString(graph.as_graph_def()))
    with tf.summary.FileWriter("files", graph) as writer:
        pass
for name in os.listdir("files"):
    if name.startswith("events"):
        os.rename("files/" + name, "files/events")

# A variable in two parts, and one in one.
with tf.Graph().as_default() as graph:
    start = numpy.arange(10, dtype=numpy.float32).reshape(5, 2)

    def rows(shape, dtype=None, partition_info=None):
        first = partition_info.var_offset[0]
        return tf.constant(start[first:first + shape[0]])

    with tf.variable_scope("m", partitioner=tf.fixed_size_partitioner(2)):
        table = tf.get_variable("table", [5, 2], initializer=rows, use_resource=False)
    plain = tf.get_variable("plain", [], initializer=tf.constant_initializer(3), use_resource=True)
    tf.reduce_sum(tf.concat(list(table), 0) * numpy.float32([1, 100]), axis=0, name="sums")
    tf.group(*[part.assign_add(part) for part in table], name="double")
    saver = tf.train.Saver()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run("double")
        saver.save(session, "files/parts", write_state=False)
    os.remove("files/parts.meta")
    meta = saver.export_meta_graph()
    meta.meta_info_def.ClearField("stripped_op_list")
    with open("files/parts.meta", "wb") as file:
        file.write(meta.SerializeToString(deterministic=True))

# A model with a file of its own, which TensorFlow 1's builder lists in a collection.
with tf.Graph().as_default(), tf.Session() as session:
    with open("vocabulary.txt", "w") as file:
        file.write("ape\nbee\ncat\n")
    path = tf.constant("vocabulary.txt", name="path")
    tf.add_to_collection(tf.GraphKeys.ASSET_FILEPATHS, path)
    whole, line = tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER
    table = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(path, tf.string, whole, tf.int64, line), -1)
    words = tf.placeholder(tf.string, [None], name="words")
    numbers = table.lookup(words) + tf.get_variable("first", initializer=numpy.int64(10), use_resource=False)
    session.run([tf.global_variables_initializer(), tf.tables_initializer()])
    builder = tf.saved_model.Builder("files/vocabulary")
    signature = tf.saved_model.predict_signature_def({"words": words}, {"numbers": numbers})
    builder.add_meta_graph_and_variables(
        session, ["serve"], {"serving_default": signature}, main_op=tf.tables_initializer(),
        assets_collection=tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS))
    builder.save()
    os.remove("vocabulary.txt")
