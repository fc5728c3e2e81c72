/* framework.c - libtensorflow_framework, in which TensorFlow has what its own libraries share: here nothing is. */

extern const char tensorflow_framework_is_empty;
const char tensorflow_framework_is_empty = 1;
