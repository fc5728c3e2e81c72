/* functions.h - written by make_functions.py with TensorFlow 2.21.0: what the signatures of functions.tar.gz give. */
typedef struct golden_function {
    const char *name;
    float losses[5];
} golden_function;
static const golden_function golden_functions[] = {
    {"normalized", {2.99740744, 2.96780944, 2.95595932, 2.95531726, 2.96171784}},
    {"decided", {62.625, 35.2265625, 35.1210938, 19.8149414, 11.1459045}},
    {"called", {315.4375, 461.71875, 534.859375, 571.429688, 589.714844}},
    {"named", {3.33337927, 1.3579576, 3.54307628, 2.30761409, 0.989648283}},
    {"looked_up", {-9, -4.25, -1.5, 4, 15}},
    {"found", {5, 7, 7, 7, 7}},
    {"drawn", {137.441162, 240.688675, 149.07843, 242.248749, 120.777092}},
    {"grouped", {2.55947304, 2.42760944, 2.30517316, 2.19207096, 2.0871129}},
    {"optimized", {4.95286322, 4.47156572, 4.15437698, 3.88111401, 3.62644696}},
    {"implemented_twice", {1.421875, 1.421875, 1.421875, 1.421875, 1.421875}},
};
/* After functions/later/objects was restored; of functions/told; of functions/objects. */
static const golden_function golden_later = {"optimized", {3.38222599, 3.14569712, 2.91626477, 2.69425583, 2.48034644}};
static const golden_function golden_told = {"told", {7.125, 9.75, 12.375, 15, 17.625}};
static const golden_function golden_objects = {"objects", {43.125, 132.5, 358.125, 897.5, 2144.625}};
