/* algorithms.c - the target for what a card remembers of algorithms. The reader is private to its file, and what it
 * knows is the process's for good; so the file is included, and each input gets a cache of its own. */
#include "fuzz.h"

#ifdef TOWER_WITH_CUDA

#include "device/cuda/choice_cache.c"

void fuzz_algorithms(const uint8_t *bytes, size_t size)
{
    static const char head[] = "tower algorithms 2: a card\n";
    cache known = {.head = "tower algorithms 2: a card\n"};
    char *text = malloc(size + sizeof head);
    if (!text)
        abort();
    memcpy(text, head, sizeof head - 1);
    memcpy(text + sizeof head - 1, bytes, size);
    text[size + sizeof head - 1] = 0;
    if (strlen(text) == size + sizeof head - 1 && read_lines(&known, text))
        for (int i = 0; i < known.count; i++)
            if (find(&known, known.choices[i].key) != &known.choices[i] || known.choices[i].position < 0)
                abort();
    twi_free(known.choices);
    free(text);
}

#else

void fuzz_algorithms(const uint8_t *bytes, size_t size)
{
    (void)bytes, (void)size;
}

#endif
