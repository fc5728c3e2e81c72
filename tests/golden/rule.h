/* rule.h - made by make_rule.py with TensorFlow 2.21.0; do not edit. */

static const int64_t golden_steps[] = {0, 1, 2, 5, 7, 9, 10, 11, 40};
static const float golden_polynomial[] = {0.5f, 0.406899959f, 0.323600024f, 0.132500008f, 0.0540999994f, 0.0149000026f, 0.00999999978f, 0.00999999978f, 0.00999999978f};
static const float golden_linear[] = {0.5f, 0.449999988f, 0.400000006f, 0.25f, 0.150000006f, 0.0500000119f, 0, 0, 0};
static const float golden_cosine[] = {0.5f, 0.488987714f, 0.457028806f, 0.274999976f, 0.142748326f, 0.0610122904f, 0.0500000007f, 0.0500000007f, 0.0500000007f};
static const float golden_norm = 13.0981865f;
static const float golden_clipped_by_norm[] = {0.458078682f, -0.610771596f, 0.0763464496f, 0.229039341f, -0.0381732248f, 1.83231473f, 0};
static const float golden_clipped[] = {1.25f, -1.25f, 0.5f, 1.25f, -0.25f, 1.25f, 0};
static const float golden_adam_w[] = {0.880000412f, -1.86000037f, 0.390002072f, 0.898961067f, -1.85936105f, 0.418762445f, 0.846746206f, -1.78793812f, 0.376151681f, 0.85297811f, -1.77534628f, 0.391795427f, 0.813744843f, -1.71766555f, 0.361785859f};
