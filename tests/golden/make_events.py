"""An event file as TensorFlow 2.21 writes it, for test_events.c. Run in this folder."""
import glob
import os

import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()
values = tf.constant([-3.5, 0.0, 0.0, 1e-13, 0.25, 0.26, 7.0, 1e20], tf.float32)
tf1.summary.scalar("loss", tf.constant(0.25))
tf1.summary.histogram("weights", values)
tf1.summary.histogram("none", tf.zeros([0]))
with tf1.Session() as session:
    writer = tf1.summary.FileWriter(".")
    for step in (0, 1, 300):
        writer.add_summary(session.run(tf1.summary.merge_all()), step)
    writer.close()
os.rename(glob.glob("events.out.tfevents.*")[0], "events")
