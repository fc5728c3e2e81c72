/* regex.cc - see regex.h. In C++, as RE2 is; its exceptions, all of memory, end here. */
#include "device/cpu/library/regex.h"

#include <new>
#include <re2/re2.h>
#include <string>

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

void twi_regex_free(twi_regex *regex)
{
    delete regex;
}

} // extern "C"
