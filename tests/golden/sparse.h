/* sparse.h - a table after 3 steps, made by make_sparse.py with TensorFlow 2.21.0. */
static const float golden_table[] = {0x0.0p+0f, 0x1.24924a0000000p-3f, 0x1.742f020000000p-3f, 0x1.1723420000000p-2f, 0x1.24924a0000000p-1f, 0x1.6db6dc0000000p-1f, 0x1.b6db6e0000000p-1f, 0x1.0000000000000p+0f, 0x1.708e460000000p-3f, 0x1.9ea00c0000000p-3f, 0x1.6db6dc0000000p+0f, 0x1.9249240000000p+0f};
