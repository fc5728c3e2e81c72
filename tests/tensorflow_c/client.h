/* client.h - what the programs of TensorFlow's C API share: checks, and operations in one line. They see that API
 * alone, so that they can be run on TensorFlow's own library, too. */
#ifndef CLIENT_H
#define CLIENT_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <tensorflow/c/c_api.h>

#define assert_fine(status)                                                                                            \
    do {                                                                                                               \
        if (TF_GetCode(status) != TF_OK)                                                                               \
            fail_msg("%d: %s", TF_GetCode(status), TF_Message(status));                                                \
    } while (0)

#define assert_wrong(status, code, part)                                                                               \
    do {                                                                                                               \
        if (TF_GetCode(status) != (code) || !strstr(TF_Message(status), part))                                         \
            fail_msg("%d: \"%s\", expected %d: \"%s\"", TF_GetCode(status), TF_Message(status), code, part);           \
    } while (0)

static inline TF_Tensor *int_tensor(int32_t value)
{
    TF_Tensor *tensor = TF_AllocateTensor(TF_INT32, NULL, 0, sizeof value);
    memcpy(TF_TensorData(tensor), &value, sizeof value);
    return tensor;
}

static inline TF_Tensor *float_tensor(const int64_t *dims, int num_dims, const float *values)
{
    size_t count = 1;
    for (int i = 0; i < num_dims; i++)
        count *= (size_t)dims[i];
    TF_Tensor *tensor = TF_AllocateTensor(TF_FLOAT, dims, num_dims, count * sizeof *values);
    memcpy(TF_TensorData(tensor), values, count * sizeof *values);
    return tensor;
}

static inline TF_Operation *placeholder(TF_Graph *graph, const char *name, TF_DataType type, TF_Status *s)
{
    TF_OperationDescription *d = TF_NewOperation(graph, "Placeholder", name);
    TF_SetAttrType(d, "dtype", type);
    TF_Operation *made = TF_FinishOperation(d, s);
    assert_fine(s);
    return made;
}

static inline TF_Operation *constant(TF_Graph *graph, const char *name, TF_Tensor *value, TF_Status *s)
{
    TF_OperationDescription *d = TF_NewOperation(graph, "Const", name);
    TF_SetAttrTensor(d, "value", value, s);
    assert_fine(s);
    TF_SetAttrType(d, "dtype", TF_TensorType(value));
    TF_Operation *made = TF_FinishOperation(d, s);
    TF_DeleteTensor(value);
    assert_fine(s);
    return made;
}

static inline TF_Output out(TF_Operation *oper)
{
    return (TF_Output){oper, 0};
}

static inline TF_Operation *unary(TF_Graph *graph, const char *op, const char *name, TF_Output x, TF_Status *s)
{
    TF_OperationDescription *d = TF_NewOperation(graph, op, name);
    TF_AddInput(d, x);
    TF_Operation *made = TF_FinishOperation(d, s);
    assert_fine(s);
    return made;
}

static inline TF_Operation *binary(TF_Graph *graph, const char *op, const char *name, TF_Output x, TF_Output y,
                                   TF_Status *s)
{
    TF_OperationDescription *d = TF_NewOperation(graph, op, name);
    TF_AddInput(d, x);
    TF_AddInput(d, y);
    TF_Operation *made = TF_FinishOperation(d, s);
    assert_fine(s);
    return made;
}

/* The sum of two by a list of inputs. */
static inline TF_Operation *add(TF_Graph *graph, const char *name, TF_Output x, TF_Output y, TF_Status *s)
{
    TF_OperationDescription *d = TF_NewOperation(graph, "AddN", name);
    TF_AddInputList(d, (TF_Output[]){x, y}, 2);
    return TF_FinishOperation(d, s);
}

static inline TF_Session *session_of(TF_Graph *graph, TF_Status *s)
{
    TF_SessionOptions *options = TF_NewSessionOptions();
    TF_Session *session = TF_NewSession(graph, options, s);
    TF_DeleteSessionOptions(options);
    assert_fine(s);
    return session;
}

/* Runs for one output, with at most one feed (oper NULL: none). */
static inline TF_Tensor *run(TF_Session *session, TF_Output feed, TF_Tensor *value, TF_Output fetch, TF_Status *s)
{
    TF_Tensor *result = NULL;
    TF_SessionRun(session, NULL, &feed, &value, feed.oper ? 1 : 0, &fetch, &result, 1, NULL, 0, NULL, s);
    return result;
}

static inline void close_session(TF_Session *session, TF_Status *s)
{
    TF_CloseSession(session, s);
    assert_fine(s);
    TF_DeleteSession(session, s);
    assert_fine(s);
}

#endif
