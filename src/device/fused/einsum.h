/* einsum.h - how the equation of an Einsum is read, for its shape rule and its kernels. */
#ifndef TWI_EINSUM_H
#define TWI_EINSUM_H

#include <tower/tensor.h>

#include <string.h>

enum {
    TWI_EINSUM_LETTERS = 52,                              /* labels that are letters; */
    TWI_EINSUM_LABELS = TWI_EINSUM_LETTERS + TW_MAX_RANK, /* behind them the axes of "...", counted from the last */
};

typedef struct twi_einsum_term {
    int rank, labels[2 * TW_MAX_RANK];
    bool has_dots;
} twi_einsum_term;

typedef struct twi_einsum {
    twi_einsum_term inputs[2], output;
    bool used[TWI_EINSUM_LETTERS];
} twi_einsum;

static inline char twi_einsum_letter(int label)
{
    return (char)(label < 26 ? 'a' + label : 'A' + label - 26);
}

static inline bool twi_einsum_has(const twi_einsum_term *term, int label)
{
    for (int k = 0; k < term->rank; k++)
        if (term->labels[k] == label)
            return true;
    return false;
}

/* Reads letters and dots up to the end of a term. rank -1: as many dots as `dots` says. NULL, or what is wrong. */
static inline const char *twi_einsum_term_read(twi_einsum *e, const char **at, int rank, int *dots,
                                               twi_einsum_term *term)
{
    const char *text = *at;
    int letters = 0;
    *term = (twi_einsum_term){0};
    for (const char *c = text; *c && *c != ',' && *c != '-'; c++)
        letters += *c != '.' && *c != ' ';
    if (rank >= 0 && letters > rank)
        return "more letters than the tensor has axes";
    int own = rank < 0 ? *dots : rank - letters;
    for (; *text && *text != ',' && *text != '-'; text++) {
        if (*text == ' ')
            continue;
        if (strncmp(text, "...", 3) == 0 && !term->has_dots) {
            term->has_dots = true;
            text += 2;
            for (int k = own; k > 0; k--)
                if (term->rank < TW_MAX_RANK)
                    term->labels[term->rank++] = TWI_EINSUM_LETTERS + k - 1;
            continue;
        }
        int label = *text >= 'a' && *text <= 'z' ? *text - 'a' : *text >= 'A' && *text <= 'Z' ? *text - 'A' + 26 : -1;
        if (label < 0)
            return "neither a letter nor \"...\"";
        if (term->rank >= TW_MAX_RANK)
            return "too many axes";
        term->labels[term->rank++] = label;
        e->used[label] = true;
    }
    *at = text;
    if (rank >= 0 && !term->has_dots && own != 0)
        return "not as many letters as the tensor has axes";
    if (rank >= 0 && term->has_dots && own > *dots)
        *dots = own;
    return NULL;
}

/* Reads the equation for tensors of these ranks. NULL, or what is wrong with it, in TensorFlow's words where programs
 * look for them. */
static inline const char *twi_einsum_read(twi_einsum *e, const char *equation, int num_inputs, const int *ranks)
{
    int dots = 0;
    const char *why = NULL;
    memset(e, 0, sizeof *e);
    if (num_inputs < 1 || num_inputs > 2)
        return "Expecting 1 or 2 input operands";
    const char *arrow = strstr(equation, "->");
    if (!arrow || strstr(arrow + 2, "->"))
        return "Expecting exactly one '->'";
    for (int i = 0; i < num_inputs && !why; i++) {
        why = twi_einsum_term_read(e, &equation, ranks[i], &dots, &e->inputs[i]);
        if (!why && i + 1 < num_inputs && *equation++ != ',')
            why = "Expected 1 inputs but got: 2";
    }
    if (why)
        return why;
    if (strncmp(equation, "->", 2) != 0)
        return "expected \"->\" behind the terms of the tensors";
    equation += 2;
    why = twi_einsum_term_read(e, &equation, -1, &dots, &e->output);
    if (!why && *equation)
        why = "something behind the output";
    for (int k = 0; k < e->output.rank && !why; k++) {
        bool found = false;
        for (int i = 0; i < num_inputs; i++)
            found = found || twi_einsum_has(&e->inputs[i], e->output.labels[k]);
        if (!found)
            why = "an axis of the output that no tensor has";
    }
    return why;
}

#endif
