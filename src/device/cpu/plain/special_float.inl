/* special_float.inl - functions of floats; see special.c. */
#define FUNCTION(op, f, expression) UNARY(f, REAL, expression)
#define FUNCTION_OF_TWO(op, f, expression) BINARY(f, REAL, expression)
FUNCTIONS(FUNCTION)
FUNCTIONS_OF_TWO(FUNCTION_OF_TWO)
FUNCTIONS_OF_TWO_WIDE(FUNCTION_OF_TWO)
#undef FUNCTION
#undef FUNCTION_OF_TWO
