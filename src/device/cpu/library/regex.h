/* regex.h - regular expressions in RE2's language, behind plain C.
 * Graphs come from files that nobody has checked: RE2 takes time that grows with the text alone, and limited memory,
 * whatever the pattern is. A pattern that would need more is refused. */
#ifndef TWI_REGEX_H
#define TWI_REGEX_H

#include "base/status.h"

#include <tower/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct twi_regex twi_regex;

/* TW_INVALID_ARGUMENT, with RE2's words, for what is no regular expression. */
tw_status twi_regex_compile(const tw_string *pattern, twi_regex **regex, tw_error *error);
/* Sets *matches: does the pattern match the whole text? Any thread may call. */
tw_status twi_regex_match(const twi_regex *regex, const tw_string *text, bool *matches, tw_error *error);
/* Sets *out to the text with the first match, or every one, replaced; \1 in the rewrite is the first group. */
tw_status twi_regex_replace(const twi_regex *regex, const tw_string *text, const tw_string *rewrite, bool all,
                            tw_string *out, tw_error *error);
void twi_regex_free(twi_regex *regex); /* NULL is fine */

#ifdef __cplusplus
}
#endif

#endif
