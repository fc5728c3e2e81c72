/* scalars.h - which ops on scalars may be steps of a joint one, _Scalars, for who joins them and who computes them. */
#ifndef TWI_SCALARS_H
#define TWI_SCALARS_H

#include <string.h>

/* What one node may hold. Each operand is a byte where it is computed, so inputs and steps are 256 at most. */
enum { TWI_SCALARS_INPUTS = 160, TWI_SCALARS_STEPS = 64, TWI_SCALARS_OPERANDS = 256, TWI_SCALARS_RESULTS = 64 };

/* A step's op is its place in this list, which a node keeps as a number. Operands 0: as many as there are. */
static const struct {
    const char *op;
    int operands;
} twi_scalar_ops[] = {
    {"Neg", 1},       {"Abs", 1},        {"Sign", 1},        {"Square", 1},       {"Reciprocal", 1}, {"Sqrt", 1},
    {"Rsqrt", 1},     {"Exp", 1},        {"Log", 1},         {"Sin", 1},          {"Cos", 1},        {"Tanh", 1},
    {"Sigmoid", 1},   {"Floor", 1},      {"Ceil", 1},        {"Round", 1},        {"IsNan", 1},      {"IsInf", 1},
    {"IsFinite", 1},  {"LogicalNot", 1}, {"Cast", 1},        {"Add", 2},          {"AddV2", 2},      {"Sub", 2},
    {"Mul", 2},       {"RealDiv", 2},    {"Div", 2},         {"DivNoNan", 2},     {"FloorDiv", 2},   {"FloorMod", 2},
    {"Maximum", 2},   {"Minimum", 2},    {"Pow", 2},         {"SquaredDifference", 2},               {"Equal", 2},
    {"NotEqual", 2},  {"Less", 2},       {"LessEqual", 2},   {"Greater", 2},      {"GreaterEqual", 2},
    {"LogicalAnd", 2}, {"LogicalOr", 2}, {"Select", 3},      {"SelectV2", 3},     {"AddN", 0},
};

enum { TWI_SCALAR_OPS = sizeof twi_scalar_ops / sizeof *twi_scalar_ops };

/* -1: not in the list. */
static inline int twi_scalar_op(const char *op)
{
    for (int i = 0; i < TWI_SCALAR_OPS; i++)
        if (strcmp(twi_scalar_ops[i].op, op) == 0)
            return i;
    return -1;
}

#endif
