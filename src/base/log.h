/* log.h - telling a person something, through the callback of tw_set_log(); silent when there is none. */
#ifndef TWI_LOG_H
#define TWI_LOG_H

#include <stdbool.h>
#include <tower/status.h>

enum { TWI_LOG_ERROR = TW_LOG_ERROR, TWI_LOG_WARNING, TWI_LOG_INFO, TWI_LOG_DETAIL };

bool twi_log_wants(int level); /* ask before composing something long */
void twi_log(int level, const char *format, ...) TW_PRINTF(2, 3);

#endif
