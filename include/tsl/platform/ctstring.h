/* ctstring.h - where programs look for the functions of texts (TF_TString_*). */
#ifndef TSL_PLATFORM_CTSTRING_H_
#define TSL_PLATFORM_CTSTRING_H_

#include "tensorflow/c/tf_tstring.h"

#endif
