/* serve.c - a program of TensorFlow's C API that is linked with the installed libtensorflow. */
#include <stdio.h>
#include <tensorflow/c/c_api.h>
#include <tensorflow/core/platform/ctstring.h> /* where some programs look for texts */
#include <tensorflow/core/platform/ctstring_internal.h>
#include <tsl/platform/ctstring.h>
#include <tsl/platform/ctstring_internal.h>

int main(void)
{
    TF_Graph *graph = TF_NewGraph();
    printf("%s\n", TF_Version());
    TF_DeleteGraph(graph);
    return graph ? 0 : 1;
}
