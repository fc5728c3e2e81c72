/* Made by make_nchw.py: losses of a network on NHWC; nchw.meta is the same on NCHW. */
static const float nchw_losses[] = {1.30855608f, 0.678178191f, 0.41353184f, 0.458414793f, 0.432776272f, 0.439518452f};
