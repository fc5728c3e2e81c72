/* dataset.h - data sets and iterators of TensorFlow's graphs (tf.data).
 *
 * A data set is a recipe: which kind it is, what its node was given when it ran, and attributes. Nothing is read before
 * an iteration over it begins, which pulls elements through its inputs one by one. An element is a row of tensors, its
 * components. A kind is a row: how much an iteration has to remember, and what it does to give the next element.
 *
 * A recipe, an optional (an element that may not be there) and whatever else TensorFlow calls a variant is held by a
 * tensor of type TW_RESOURCE, which counts who refers to it. Where a graph passes it along an edge, it lies in the slot
 * of the node that made it: a resource of the session's.
 *
 * An iterator is a resource, too: an iteration that outlives steps. It has one monitor for all that waits in it; kinds
 * may have threads of their own (ahead.h), which end with the iteration. */
#ifndef TWI_DATASET_H
#define TWI_DATASET_H

#include "device/function.h"
#include "device/state/monitor.h"

enum { TWI_ELEMENT = 64, TWI_RECIPE_FUNCTIONS = 4, TWI_RECIPE_LISTS = 4 }; /* components, functions, lists, at most */
enum { TWI_OTHER_ELEMENTS = 1 << 30 };

/* ---- slots ------------------------------------------------------------------------------------------------------- */

/* Makes the resource one, or checks that it is. */
tw_status twi_slot_make(twi_resource *resource, const char *node, tw_error *error);
bool twi_is_slot(const twi_resource *resource);
void twi_slot_put(twi_resource *slot, tw_tensor *value); /* takes the caller's reference */
tw_tensor *twi_slot_get(twi_resource *slot);             /* one more reference; NULL: nothing was put there */

/* A tensor that owns an object; NULL when out of memory: then it is released, too. */
tw_tensor *twi_variant(void *object, void (*release)(void *object));
void *twi_variant_of(const tw_tensor *tensor, void (*release)(void *object)); /* its object; NULL: it owns no such */

/* A generator of seeds, which data sets share (shuffle.c): for each iteration new ones if it draws, else always these;
 * both 0: the system's. */
tw_status twi_seeds_make(int64_t seed, int64_t seed2, bool draws, tw_tensor **tensor, tw_error *error);
bool twi_is_seeds(const tw_tensor *tensor);

/* ---- recipes ----------------------------------------------------------------------------------------------------- */

typedef struct twi_iteration twi_iteration;
typedef struct twi_recipe twi_recipe;

/* What a call that gives an element is told, and tells. */
typedef struct twi_pull {
    const atomic_bool *ending; /* look at it before each wait: TW_CANCELLED */
    bool end;                  /* there are no more elements; set by next() */
    tw_error *error;
} twi_pull;

typedef struct twi_recipe_kind {
    const char *op;
    /* Gives the next element: components become tensors of the caller's. Called by one thread at a time. */
    tw_status (*next)(twi_iteration *it, twi_pull *pull, tw_tensor **element);
    size_t state;                                           /* bytes of it->state, zeroed */
    tw_status (*begin)(twi_iteration *it, tw_error *error); /* NULL: nothing to do */
    void (*end)(twi_iteration *it);                         /* NULL: nothing to free; before inputs end */
    tw_status (*check)(twi_recipe *recipe,
                       tw_error *error);         /* arguments that cannot be; NULL: all can. May set `facts` */
    void (*forget)(twi_recipe *recipe);          /* frees `facts`; NULL: there are none */
    const char *functions[TWI_RECIPE_FUNCTIONS]; /* attributes that name them */
    const char *flag;                            /* a bool attribute that it looks at; NULL: none */
    int before;                                  /* so many inputs come before the lists, */
    const char *lists[TWI_RECIPE_LISTS];         /* which are as long as these attributes */
    /* How many elements there are, without looking for them, or one of the two below; NULL: nobody knows. */
    int64_t (*count)(const twi_recipe *recipe);
    /* Gives element `index`, of so many as there are, as next() does; NULL: only next() can. */
    tw_status (*at)(const twi_recipe *recipe, int64_t index, tw_tensor **element, tw_error *error);
    int passes; /* from this input on, elements have its components, of whatever shape; TWI_OTHER_ELEMENTS: of none */
} twi_recipe_kind;

enum { TWI_ENDLESS = -1, TWI_UNCOUNTED = -2 }; /* TensorFlow's numbers for what has no end, and for nobody knows */

struct twi_recipe {
    const twi_recipe_kind *kind;
    char *node;            /* its name, for messages */
    tw_tensor **arguments; /* [num_arguments] the node's inputs; NULL: a resource that is no recipe */
    int num_arguments;
    int lists[TWI_RECIPE_LISTS]; /* how long the kind's are */
    int num_components;          /* of an element; */
    tw_dtype *types;             /* [num_components] */
    int64_t rows;                /* the first dimension of elements' components; -1: nobody knows */
    twi_function *functions[TWI_RECIPE_FUNCTIONS];
    bool flag;        /* the kind's attribute */
    void *facts;      /* the kind's own, shared by all iterations */
    int depth, parts; /* recipes that lie in each other, itself too; all that an iteration goes through */
};

/* The recipe in such a tensor; NULL: something else is. */
twi_recipe *twi_recipe_of(const tw_tensor *tensor);
/* A recipe with room for arguments and types, for who fills it in; NULL when out of memory. twi_variant() with
 * twi_recipe_free makes a tensor of it. */
twi_recipe *twi_recipe_make(const twi_recipe_kind *kind, const char *node, int num_arguments, int num_components);
void twi_recipe_free(void *recipe); /* NULL is fine */

/* Inputs by number. */
int64_t twi_recipe_int(const twi_recipe *recipe,
                       int argument); /* the first element of an integer or bool tensor; 0: it has none */
/* The i-th behind the lists. */
static inline int twi_recipe_behind(const twi_recipe *r, int i)
{
    int at = r->kind->before + i;
    for (int k = 0; k < TWI_RECIPE_LISTS; k++)
        at += r->lists[k];
    return at;
}

int64_t twi_recipe_count(const twi_recipe *recipe); /* as its kind says; of NULL, which is no data set, nobody knows */
/* Element `index`; TW_OUT_OF_RANGE: there are not so many. Of kinds that cannot, TW_UNIMPLEMENTED. */
tw_status twi_recipe_at(const twi_recipe *recipe, int64_t index, tw_tensor **element, tw_error *error);

const twi_recipe_kind *twi_recipe_find(const char *op); /* NULL: no data set's node */

/* ---- iterations -------------------------------------------------------------------------------------------------- */

struct twi_iteration {
    const twi_recipe *recipe;
    tw_tensor *holds; /* a reference to the recipe */
    twi_monitor *monitor; /* what all parts of an iterator wait with */
    void *state;
};

tw_status twi_iteration_begin(tw_tensor *recipe, twi_monitor *monitor, twi_iteration **iteration, tw_error *error);
/* element[recipe->num_components]; at the end, and after an error, it holds nothing. */
tw_status twi_iteration_next(twi_iteration *iteration, twi_pull *pull, tw_tensor **element);
void twi_iteration_end(twi_iteration *iteration); /* NULL is fine */

void twi_element_drop(tw_tensor **element, int count); /* releases, and leaves NULLs */

/* ---- iterators --------------------------------------------------------------------------------------------------- */

typedef struct twi_iterator twi_iterator;

/* Makes the resource one that has no data set yet, or checks that it is one. `factory` gives its data set when it is
 * first asked; NULL: it has to be given one. Its elements are `types` and `shapes`, of a feedable one (types NULL)
 * whatever it stands for. */
tw_status twi_iterator_make(twi_resource *resource, const twi_attr *types, const twi_attr *shapes,
                            twi_function *factory, tw_error *error);
bool twi_is_iterator(const twi_resource *resource);
/* Begins anew, with another recipe. */
tw_status twi_iterator_start(twi_resource *iterator, tw_tensor *recipe, tw_error *error);
tw_status twi_iterator_next(twi_resource *iterator, twi_pull *pull, tw_tensor **element, int num_components);
/* From now on it stands for the iterator of that name; NULL: for itself. */
void twi_iterator_stand_for(twi_resource *iterator, twi_resource *other);
const char *twi_iterator_name(const twi_resource *iterator);

#endif
