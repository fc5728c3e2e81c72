/* c_locale.c - see c_locale.h, which has been included already. The thread has the C locale while the C library's own
 * function is at work. */
#undef vsnprintf
#undef vasprintf

locale_t twi_c_locale(void)
{
    return newlocale(LC_ALL_MASK, "C", (locale_t)0); /* the C library has it: nothing is made, nothing fails */
}

int twi_vsnprintf(char *text, size_t size, const char *format, va_list arguments)
{
    locale_t callers = uselocale(twi_c_locale());
    int length = vsnprintf(text, size, format, arguments);
    uselocale(callers);
    return length;
}

int twi_snprintf(char *text, size_t size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = twi_vsnprintf(text, size, format, arguments);
    va_end(arguments);
    return length;
}

int twi_vasprintf(char **text, const char *format, va_list arguments)
{
    locale_t callers = uselocale(twi_c_locale());
    int length = vasprintf(text, format, arguments);
    uselocale(callers);
    return length;
}

int twi_sscanf(const char *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    locale_t callers = uselocale(twi_c_locale());
    int found = vsscanf(text, format, arguments);
    uselocale(callers);
    va_end(arguments);
    return found;
}

int twi_fscanf(FILE *file, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    locale_t callers = uselocale(twi_c_locale());
    int found = vfscanf(file, format, arguments);
    uselocale(callers);
    va_end(arguments);
    return found;
}
