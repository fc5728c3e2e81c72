/* regex.cc - see regex.h. In C++, as RE2 is; its exceptions, all of memory, end here. */
#include "device/cpu/library/regex.h"

#include <new>
#include <re2/re2.h>
#include <string>

extern "C" bool twi_string_set(tw_string *string, const void *data, size_t size); /* tensor/tensor.h, which is C */

struct twi_regex {
    RE2 pattern;
};

namespace {

RE2::Options silent()
{
    RE2::Options options; /* as TensorFlow has them: UTF-8, and 8 MB for a pattern's machines */
    options.set_log_errors(false);
    return options;
}

std::string copy(const tw_string *string)
{
    return string->size ? std::string(string->data, string->size) : std::string();
}

} // namespace

extern "C" {

tw_status twi_regex_compile(const tw_string *pattern, twi_regex **regex, tw_error *error)
{
    *regex = nullptr;
    try {
        twi_regex *made = new twi_regex{RE2(copy(pattern), silent())};
        if (made->pattern.ok())
            *regex = made;
        else
            twi_fail(error, TW_INVALID_ARGUMENT, "'%.200s' is not a regular expression: %.200s",
                     pattern->data ? pattern->data : "", made->pattern.error().c_str());
        if (!*regex)
            delete made;
        return *regex ? TW_OK : TW_INVALID_ARGUMENT;
    } catch (const std::bad_alloc &) {
        return twi_fail_memory(error, "reading a regular expression");
    }
}

tw_status twi_regex_match(const twi_regex *regex, const tw_string *text, bool *matches, tw_error *error)
{
    try {
        *matches = RE2::FullMatch(copy(text), regex->pattern);
        return TW_OK;
    } catch (const std::bad_alloc &) {
        return twi_fail_memory(error, "matching a regular expression");
    }
}

tw_status twi_regex_replace(const twi_regex *regex, const tw_string *text, const tw_string *rewrite, bool all,
                            tw_string *out, tw_error *error)
{
    try {
        std::string made = copy(text), with = copy(rewrite);
        if (all) /* a rewrite that names groups which there are not leaves the text as it is */
            RE2::GlobalReplace(&made, regex->pattern, with);
        else
            RE2::Replace(&made, regex->pattern, with);
        return twi_string_set(out, made.data(), made.size()) ? TW_OK : twi_fail_memory(error, "replacing in a text");
    } catch (const std::bad_alloc &) {
        return twi_fail_memory(error, "replacing in a text");
    }
}

void twi_regex_free(twi_regex *regex)
{
    delete regex;
}

} // extern "C"
