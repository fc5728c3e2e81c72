/* ctstring_internal.h - where programs look for the functions of texts (TF_TString_*). */
#ifndef TENSORFLOW_CORE_PLATFORM_CTSTRING_INTERNAL_H_
#define TENSORFLOW_CORE_PLATFORM_CTSTRING_INTERNAL_H_

#include "tensorflow/c/tf_tstring.h"

#endif
