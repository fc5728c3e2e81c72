/* cudnn_plan.c - an engine for an operation graph, and running it; see cudnn_graph.h. */
#ifdef TOWER_WITH_CUDNN
#include "base/hash.h"
#include "device/cuda/cudnn_graph.h"

#include <string.h>

enum { MOST_ENGINES = 48, MOST_NOTES = CUDNN_NUMERICAL_NOTE_TYPE_COUNT };

/* A descriptor that is looked at and let go. */
static cudnnBackendDescriptor_t borrow(twi_descriptors *d, cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t item = twi_descriptor(d, type);
    if (item)
        d->count--; /* the caller destroys it */
    return item;
}

static int64_t get(twi_descriptors *d, cudnnBackendDescriptor_t item, cudnnBackendAttributeName_t name,
                   cudnnBackendAttributeType_t type, int64_t most, void *values)
{
    int64_t count = 0;
    if (d->status != TW_OK)
        return 0;
    int code = (int)d->cudnn->cudnnBackendGetAttribute(item, name, type, most, &count, values);
    if (code != 0)
        d->status = twi_library_fail(d->error, d->device, "cudnnBackendGetAttribute", TWI_HERE, d->cudnn->text(code));
    return count < most || most == 0 ? count : most;
}

/* Whether the configuration's engine obeys; `number` is set. */
static bool obeys(twi_descriptors *d, cudnnBackendDescriptor_t configuration, const twi_engine_rules *rules,
                  int64_t *number)
{
    cudnnBackendNumericalNote_t notes[MOST_NOTES];
    bool fine = true;
    cudnnBackendDescriptor_t engine = borrow(d, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    if (!engine)
        return false;
    get(d, configuration, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine);
    get(d, engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, number);
    int64_t count = get(d, engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, MOST_NOTES, notes);
    for (int i = 0; i < count; i++)
        fine = fine && (notes[i] != CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC || rules->any_order) &&
               (notes[i] != CUDNN_NUMERICAL_NOTE_TENSOR_CORE || rules->tensor_cores) &&
               notes[i] != CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS &&
               notes[i] != CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
    d->cudnn->cudnnBackendDestroyDescriptor(engine);
    return fine && d->status == TW_OK;
}

/* What the engine is told besides: an engine comes with many settings, and each may add up in an order of its own. The
 * settings alone, not a text of the plan: that holds addresses and compiled code, too. */
static uint64_t settings_of(twi_descriptors *d, cudnnBackendDescriptor_t configuration)
{
    cudnnBackendDescriptor_t knobs[CUDNN_KNOB_TYPE_COUNTS];
    uint64_t hash = 0;
    int made = 0;
    for (; made < CUDNN_KNOB_TYPE_COUNTS; made++)
        if (!(knobs[made] = borrow(d, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR)))
            break;
    int64_t count =
        get(d, configuration, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, made, knobs);
    for (int i = 0; i < count; i++) {
        cudnnBackendKnobType_t type = CUDNN_KNOB_TYPE_COUNTS;
        int64_t value = 0;
        get(d, knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
        get(d, knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &value);
        hash += twi_hash_mix((uint64_t)type + 1, (uint64_t)value); /* a sum: in whatever order they come */
    }
    for (int i = 0; i < made; i++)
        d->cudnn->cudnnBackendDestroyDescriptor(knobs[i]);
    return hash;
}

/* A plan of the configuration; NULL when the engine does not want to after all. */
static cudnnBackendDescriptor_t plan_of(twi_descriptors *d, cudnnBackendDescriptor_t configuration,
                                        cudnnHandle_t handle, cudnnBackendDescriptor_t card, size_t *workspace)
{
    int64_t bytes = 0;
    cudnnBackendDescriptor_t plan = twi_descriptor(d, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    twi_describe(d, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &configuration);
    if (handle)
        twi_describe(d, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    else
        twi_describe(d, plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &card);
    if (d->status != TW_OK)
        return NULL;
    if (d->cudnn->cudnnBackendFinalize(plan) != CUDNN_STATUS_SUCCESS) {
        d->cudnn->cudnnBackendDestroyDescriptor(d->items[--d->count]);
        return NULL;
    }
    get(d, plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &bytes);
    *workspace = (size_t)bytes;
    return plan;
}

/* Asks one of the library's ways to guess; its answer's positions begin at `first`. */
static bool next_by(twi_descriptors *d, cudnnBackendHeurMode_t mode, cudnnBackendDescriptor_t graph,
                    cudnnHandle_t handle, cudnnBackendDescriptor_t card, const twi_engine_rules *rules,
                    const twi_search *search, int first, twi_engine *engine)
{
    cudnnBackendDescriptor_t found[MOST_ENGINES];
    int made = 0, taken = -1;
    int64_t count = 0;
    cudnnBackendDescriptor_t guess = borrow(d, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    if (!guess)
        return false;
    twi_describe(d, guess, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
    twi_describe(d, guess, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (card)
        twi_describe(d, guess, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &card);
    /* a way that has no answer fails here: that is no failure of ours */
    if (d->status == TW_OK && d->cudnn->cudnnBackendFinalize(guess) == CUDNN_STATUS_SUCCESS) {
        for (; made < MOST_ENGINES; made++)
            if (!(found[made] = borrow(d, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)))
                break;
        count = get(d, guess, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, made, found);
    }
    for (int i = 0; i < count && taken < 0 && d->status == TW_OK; i++) {
        if (first + i < search->from || !obeys(d, found[i], rules, &engine->number) ||
            !twi_is_wanted(search, first + i, engine->number, engine->settings = settings_of(d, found[i])) ||
            !(engine->plan = plan_of(d, found[i], handle, card, &engine->workspace)))
            continue;
        if (engine->workspace <= rules->workspace)
            taken = i;
        else
            d->cudnn->cudnnBackendDestroyDescriptor(d->items[--d->count]);
    }
    engine->position = first + taken;
    for (int i = 0; i < made; i++)
        if (i == taken)
            d->items[d->count++] = found[i]; /* after its plan, and as long */
        else
            d->cudnn->cudnnBackendDestroyDescriptor(found[i]);
    d->cudnn->cudnnBackendDestroyDescriptor(guess);
    return taken >= 0 && d->status == TW_OK;
}

bool twi_engine_next(twi_descriptors *d, cudnnBackendDescriptor_t graph, cudnnHandle_t handle,
                     cudnnBackendDescriptor_t card, const twi_engine_rules *rules, const twi_search *search,
                     twi_engine *engine)
{
    static const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
    for (int i = search->from / MOST_ENGINES; i < (int)(sizeof modes / sizeof *modes) && d->status == TW_OK; i++)
        if (next_by(d, modes[i], graph, handle, card, rules, search, i * MOST_ENGINES, engine))
            return true;
    return false;
}

void twi_engine_drop(twi_descriptors *d, const twi_engine *engine)
{
    for (int i = 0; i + 1 < d->count; i++) {
        if (d->items[i] != engine->plan)
            continue;
        for (int k = 0; k < 2; k++) /* the plan, then its configuration */
            d->cudnn->cudnnBackendDestroyDescriptor(d->items[i + k]);
        d->count -= 2;
        memmove(d->items + i, d->items + i + 2, (size_t)(d->count - i) * sizeof *d->items);
        return;
    }
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

void twi_variant_pack_free(const twi_cudnn *library, twi_variant_pack *pack)
{
    if (pack->pack)
        library->cudnnBackendDestroyDescriptor(pack->pack);
    pack->pack = NULL;
}

/* A finalized pack cannot be changed: where something lies elsewhere now, another one is made. */
static tw_status bind(const twi_cudnn *library, twi_variant_pack *pack, int count, const int64_t *ids,
                      void *const *pointers, void *workspace, tw_error *error)
{
    tw_status status = TW_OK;
    size_t bytes = (size_t)count * sizeof *pointers;
    if (pack->pack && memcmp(pack->pointers, pointers, bytes) == 0 && pack->workspace == workspace)
        return TW_OK;
    twi_variant_pack_free(library, pack);
    memcpy(pack->pointers, pointers, bytes);
    pack->workspace = workspace;
    TWI_LIBRARY_CALL(NULL, error, library, cudnnBackendCreateDescriptor, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
                     &pack->pack);
    TWI_LIBRARY_CALL(NULL, error, library, cudnnBackendSetAttribute, pack->pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS,
                     CUDNN_TYPE_INT64, count, ids);
    TWI_LIBRARY_CALL(NULL, error, library, cudnnBackendSetAttribute, pack->pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                     CUDNN_TYPE_VOID_PTR, count, pointers);
    TWI_LIBRARY_CALL(NULL, error, library, cudnnBackendSetAttribute, pack->pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE,
                     CUDNN_TYPE_VOID_PTR, 1, &workspace);
    TWI_LIBRARY_CALL(NULL, error, library, cudnnBackendFinalize, pack->pack);
done:
    if (status != TW_OK)
        twi_variant_pack_free(library, pack);
    return status;
}

tw_status twi_plan_execute(const twi_cudnn *library, cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                           twi_variant_pack *pack, int count, const int64_t *ids, void *const *pointers,
                           void *workspace, tw_error *error)
{
    tw_status status;
    TWI_TRY(bind(library, pack, count, ids, pointers, workspace, error));
    TWI_LIBRARY_CALL(NULL, error, library, cudnnBackendExecute, handle, plan, pack->pack);
done:
    return status;
}
#else
typedef int nothing_here;
#endif
