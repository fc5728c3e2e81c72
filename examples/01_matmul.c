/* 01_matmul.c - a graph, a session, a result.
 *
 * Building only describes the work; the session does it.
 *
 * prints: \[\[22 28\] \[49 64\]\]
 */
#include "example.h"

int main(void)
{
    tw_error error = TW_NO_ERROR;
    tw_graph *g = tw_graph_create();

    tw_output a = tw_constant_floats(g, TW_SHAPE(2, 3), TW_ARRAY(float, 1, 2, 3, 4, 5, 6));
    tw_output b = tw_constant_floats(g, TW_SHAPE(3, 2), TW_ARRAY(float, 1, 2, 3, 4, 5, 6));
    tw_output product = tw_matmul(g, a, b);

    tw_session *session;
    tw_tensor *result = NULL;
    check(tw_session_create(g, NULL, &session, &error), &error); /* building errors show here, all at once */
    check(tw_session_run(session, NULL, 0, &product, 1, &result, &error), &error);
    print_matrix("", result);

    tw_tensor_release(result);
    tw_session_destroy(session);
    tw_graph_destroy(g);
    return 0;
}
