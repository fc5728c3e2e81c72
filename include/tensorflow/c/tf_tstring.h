/* tf_tstring.h - an element of a TF_STRING tensor: 24 bytes, as TensorFlow 2.4 and later have them.
 *
 * The two low bits of the first byte say which of four forms it is. A text of up to 22 bytes lies in the element
 * itself, a larger one in memory of its own; the other two forms are of texts that lie elsewhere: behind the element,
 * or where nobody has to free them. The numbers below are in the order of bytes of little-endian machines. */
#ifndef TENSORFLOW_C_TF_TSTRING_H_
#define TENSORFLOW_C_TF_TSTRING_H_

#include "tensorflow/c/c_api_macros.h"

#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum TF_TString_Type {
    TF_TSTR_SMALL = 0,
    TF_TSTR_LARGE = 1,
    TF_TSTR_OFFSET = 2,
    TF_TSTR_VIEW = 3,
    TF_TSTR_TYPE_MASK = 3,
} TF_TString_Type;

typedef struct TF_TString_Large {
    size_t size; /* << 2, and the type */
    size_t cap;
    char *ptr; /* malloc's */
} TF_TString_Large;

typedef struct TF_TString_Offset {
    uint32_t size; /* << 2, and the type */
    uint32_t offset;
    uint32_t count;
} TF_TString_Offset;

typedef struct TF_TString_View {
    size_t size; /* << 2, and the type */
    const char *ptr;
} TF_TString_View;

typedef struct TF_TString_Raw {
    uint8_t raw[24];
} TF_TString_Raw;

enum { TF_TString_SmallCapacity = sizeof(TF_TString_Raw) - 2 };

typedef struct TF_TString_Small {
    uint8_t size; /* << 2 */
    char str[TF_TString_SmallCapacity + 1];
} TF_TString_Small;

typedef struct TF_TString {
    union {
        TF_TString_Small smll;
        TF_TString_Large large;
        TF_TString_Offset offset;
        TF_TString_View view;
        TF_TString_Raw raw;
    } u;
} TF_TString;

static inline TF_TString_Type TF_TString_GetType(const TF_TString *str)
{
    return (TF_TString_Type)(str->u.raw.raw[0] & TF_TSTR_TYPE_MASK);
}

static inline size_t TF_TString_GetSize(const TF_TString *str)
{
    switch (TF_TString_GetType(str)) {
    case TF_TSTR_SMALL:
        return str->u.smll.size >> 2;
    case TF_TSTR_LARGE:
        return str->u.large.size >> 2;
    case TF_TSTR_OFFSET:
        return str->u.offset.size >> 2;
    default:
        return str->u.view.size >> 2;
    }
}

static inline size_t TF_TString_GetCapacity(const TF_TString *str)
{
    switch (TF_TString_GetType(str)) {
    case TF_TSTR_SMALL:
        return TF_TString_SmallCapacity;
    case TF_TSTR_LARGE:
        return str->u.large.cap;
    default:
        return 0;
    }
}

static inline const char *TF_TString_GetDataPointer(const TF_TString *str)
{
    switch (TF_TString_GetType(str)) {
    case TF_TSTR_SMALL:
        return str->u.smll.str;
    case TF_TSTR_LARGE:
        return str->u.large.ptr;
    case TF_TSTR_OFFSET:
        return (const char *)str + str->u.offset.offset;
    default:
        return str->u.view.ptr;
    }
}

static inline void TF_TString_Init(TF_TString *str) /* an empty text; forgets what was there */
{
    memset(str, 0, sizeof *str);
}

static inline void TF_TString_Dealloc(TF_TString *str) /* frees what it has, and leaves an empty text; others stay */
{
    if (TF_TString_GetType(str) == TF_TSTR_LARGE && str->u.large.ptr) {
        free(str->u.large.ptr);
        TF_TString_Init(str);
    }
}

/* Makes it a text of its own of these bytes, which may be its own. Without memory it becomes empty. */
static inline void TF_TString_Copy(TF_TString *dst, const char *src, size_t size)
{
    TF_TString made;
    TF_TString_Init(&made);
    if (size <= TF_TString_SmallCapacity) {
        made.u.smll.size = (uint8_t)(size << 2);
        if (size)
            memcpy(made.u.smll.str, src, size);
    } else {
        size_t cap = (size + 16) & ~(size_t)15;
        char *bytes = (char *)malloc(cap);
        if (bytes) {
            memcpy(bytes, src, size);
            bytes[size] = 0;
            made.u.large.size = size << 2 | TF_TSTR_LARGE;
            made.u.large.cap = cap - 1;
            made.u.large.ptr = bytes;
        }
    }
    TF_TString_Dealloc(dst);
    *dst = made;
}

/* Makes it a text that lies at src, which stays the caller's. */
static inline void TF_TString_AssignView(TF_TString *dst, const char *src, size_t size)
{
    TF_TString_Dealloc(dst);
    dst->u.view.size = size << 2 | TF_TSTR_VIEW;
    dst->u.view.ptr = src;
}

/* The same as functions of the library. */
TF_CAPI_EXPORT extern void TF_StringInit(TF_TString *t);
TF_CAPI_EXPORT extern void TF_StringCopy(TF_TString *dst, const char *src, size_t size);
TF_CAPI_EXPORT extern void TF_StringAssignView(TF_TString *dst, const char *src, size_t size);
TF_CAPI_EXPORT extern const char *TF_StringGetDataPointer(const TF_TString *tstr);
TF_CAPI_EXPORT extern TF_TString_Type TF_StringGetType(const TF_TString *str);
TF_CAPI_EXPORT extern size_t TF_StringGetSize(const TF_TString *tstr);
TF_CAPI_EXPORT extern size_t TF_StringGetCapacity(const TF_TString *str);
TF_CAPI_EXPORT extern void TF_StringDealloc(TF_TString *tstr);

#ifdef __cplusplus
}
#endif
#endif
