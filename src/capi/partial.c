/* partial.c - runs in parts: what a part has computed and a later one needs is kept and fed to it, so that each
 * operation runs once.
 * Never here:  whole runs (session.c). */
#include "capi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct kept {
    tw_output output;
    tw_tensor *value;
} kept;

struct partial_run {
    char handle[32];
    tw_output *feeds;   /* [num_feeds] that may come */
    tw_output *fetches; /* [num_fetches] that may be asked for; targets have index -1 */
    int num_feeds, num_fetches;
    bool *fed, *fetched;
    kept *values; /* fed or computed so far */
    int num_values;
    bool *ran; /* [num_ran] which nodes have */
    int num_ran;
    partial_run *next;
};

static void free_run(partial_run *p)
{
    for (int i = 0; i < p->num_values; i++)
        tw_tensor_release(p->values[i].value);
    free(p->feeds);
    free(p->fetches);
    free(p->fed);
    free(p->fetched);
    free(p->values);
    free(p->ran);
    free(p);
}

void free_partial_runs(partial_run *runs)
{
    while (runs) {
        partial_run *next = runs->next;
        free_run(runs);
        runs = next;
    }
}

/* Of a session's list, which partial runs of several threads may change. */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;

static void keep_partial_run(TF_Session *session, partial_run *run)
{
    pthread_mutex_lock(&list_lock);
    run->next = *partial_runs_of(session);
    *partial_runs_of(session) = run;
    pthread_mutex_unlock(&list_lock);
}

static partial_run *find_partial_run(TF_Session *session, const char *handle)
{
    pthread_mutex_lock(&list_lock);
    partial_run *run = *partial_runs_of(session);
    while (run && strcmp(run->handle, handle) != 0)
        run = run->next;
    pthread_mutex_unlock(&list_lock);
    return run;
}

static int find(const tw_output *list, int count, tw_output output)
{
    for (int i = 0; i < count; i++)
        if (list[i].node == output.node && list[i].index == output.index)
            return i;
    return -1;
}

static int find_value(const partial_run *p, tw_output output)
{
    for (int i = 0; i < p->num_values; i++)
        if (p->values[i].output.node == output.node && p->values[i].output.index == output.index)
            return i;
    return -1;
}

/* ---- declaring -------------------------------------------------------------------------------------------------- */

static void declare_feed(partial_run *p, const TF_Graph *graph, TF_Output given, TF_Status *status)
{
    tw_output output;
    if (!find_output_as(graph, given, &output, TF_NOT_FOUND, TF_INVALID_ARGUMENT, status))
        return;
    if (find(p->feeds, p->num_feeds, output) >= 0)
        set_status(status, TF_INVALID_ARGUMENT, "Endpoint \"%s:%d\" fed more than once.", tw_node_name(output.node),
                   output.index);
    p->feeds[p->num_feeds++] = output;
}

/* One that is declared twice is one. */
static void declare_fetch(partial_run *p, const TF_Graph *graph, TF_Output given, TF_Status *status)
{
    tw_output output;
    if (!find_output_as(graph, given, &output, TF_NOT_FOUND, TF_INVALID_ARGUMENT, status))
        return;
    if (find(p->feeds, p->num_feeds, output) >= 0)
        set_status(status, TF_INVALID_ARGUMENT, "%s:%d is both fed and fetched.", tw_node_name(output.node),
                   output.index);
    else if (find(p->fetches, p->num_fetches, output) < 0)
        p->fetches[p->num_fetches++] = output;
}

void TF_SessionPRunSetup(TF_Session *session, const TF_Output *inputs, int ninputs, const TF_Output *outputs,
                         int noutputs, const TF_Operation *const *target_opers, int ntargets, const char **handle,
                         TF_Status *status)
{
    static int number;
    const TF_Graph *graph = session_graph(session);
    size_t feeds = (size_t)ninputs + 1, fetches = (size_t)noutputs + (size_t)ntargets + 1;
    partial_run *p = calloc(1, sizeof *p);
    *handle = NULL;
    TF_SetStatus(status, TF_OK, "");
    if (!p) {
        set_no_memory(status);
        return;
    }
    p->feeds = calloc(feeds, sizeof *p->feeds);
    p->fetches = calloc(fetches, sizeof *p->fetches);
    p->fed = calloc(feeds, sizeof *p->fed);
    p->fetched = calloc(fetches, sizeof *p->fetched);
    snprintf(p->handle, sizeof p->handle, "partial_run_%d", __atomic_add_fetch(&number, 1, __ATOMIC_RELAXED));
    char *name = strdup(p->handle);
    if (!p->feeds || !p->fetches || !p->fed || !p->fetched || !name)
        set_no_memory(status);
    if (is_ok(status) && is_closed(session))
        set_status(status, TF_CANCELLED, "Session has been closed.");
    if (is_ok(status) && noutputs == 0 && ntargets == 0)
        set_status(status, TF_INVALID_ARGUMENT, "Must specify at least one target to fetch or execute.");
    for (int i = 0; i < ninputs && is_ok(status); i++)
        declare_feed(p, graph, inputs[i], status);
    for (int i = 0; i < noutputs && is_ok(status); i++)
        declare_fetch(p, graph, outputs[i], status);
    for (int i = 0; i < ntargets && is_ok(status); i++)
        if (target_opers[i] && target_opers[i]->graph == graph)
            p->fetches[p->num_fetches++] = (tw_output){target_opers[i]->node, -1};
        else
            set_status(status, TF_INVALID_ARGUMENT, "target %d is not in the session's graph", i);
    if (!is_ok(status)) {
        free(name);
        free_run(p);
        return;
    }
    keep_partial_run(session, p);
    *handle = name;
}

void TF_DeletePRunHandle(const char *handle)
{
    free((char *)handle);
}

/* ---- a part ----------------------------------------------------------------------------------------------------- */

typedef struct part {
    partial_run *run;
    const TF_Graph *graph;
    int count;   /* nodes */
    bool *now;   /* which are computed in this part, */
    bool *later; /* and which of those that are left to be asked for need */
    tw_feed *feeds;
    tw_output *fetches; /* what is asked for, then what is to be kept */
    tw_tensor **results;
    int num_feeds, num_asked, num_fetches;
    TF_Status *status;
} part;

static bool is_plain(tw_output output)
{
    tw_dtype dtype = tw_output_dtype(output);
    int first;
    const tw_op_info *op = find_op(tw_node_op(output.node));
    const tw_op_argument *argument =
        op ? find_argument(output.node, op->outputs, op->num_outputs, output.index, &first) : NULL;
    return dtype != TW_RESOURCE && dtype != TW_VARIANT && !(argument && argument->is_reference);
}

/* Marks what an output needs that is not there yet. False: a feed is missing, or something would have to run twice. */
static bool mark(part *m, bool *marks, tw_output wanted, bool is_now)
{
    partial_run *p = m->run;
    int last = tw_node_number(wanted.node);
    bool *own = calloc((size_t)m->count, sizeof *own);
    if (!own) {
        set_no_memory(m->status);
        return false;
    }
    own[last] = wanted.index < 0 || find_value(p, wanted) < 0;
    for (int i = last; i >= 0 && is_ok(m->status); i--) {
        const tw_node *node = m->graph->operations[i]->node;
        if (!own[i])
            continue;
        const tw_op_info *op = find_op(tw_node_op(node));
        if (is_now && i < p->num_ran && p->ran[i] && op && op->is_stateful && tw_node_num_inputs(node) > 0)
            set_status(m->status, TF_UNIMPLEMENTED, "'%s' has run in this partial run, and would have to run again",
                       tw_node_name(node));
        for (int k = 0; k < tw_node_num_inputs(node); k++) {
            tw_output from = tw_node_input(node, k);
            int feed = find(p->feeds, p->num_feeds, from);
            if (find_value(p, from) >= 0)
                continue;
            if (is_now && feed >= 0)
                set_status(m->status, TF_INVALID_ARGUMENT,
                           "Fetch %s:%d can't be computed from the feeds that have been fed so far: '%s' needs '%s:%d'",
                           tw_node_name(wanted.node), wanted.index, tw_node_name(node), tw_node_name(from.node),
                           from.index);
            own[tw_node_number(from.node)] |= feed < 0;
        }
        for (int k = 0; k < tw_node_num_control_inputs(node); k++) {
            int before = tw_node_number(tw_node_control_input(node, k));
            own[before] |= !(before < p->num_ran && p->ran[before]);
        }
        marks[i] = true;
    }
    free(own);
    return is_ok(m->status);
}

static bool keep_value(partial_run *p, tw_output output, tw_tensor *value)
{
    kept *grown = realloc(p->values, sizeof *grown * (size_t)(p->num_values + 1));
    if (!grown)
        return false;
    p->values = grown;
    p->values[p->num_values++] = (kept){output, tw_tensor_retain(value)};
    return true;
}

/* Whatever is fed and fetched is looked at before any of it is taken: a call that is refused changes nothing. */
static void check_part(part *m, const TF_Output *inputs, int num_inputs, const TF_Output *outputs, int num_outputs)
{
    const partial_run *p = m->run;
    for (int i = 0; i < num_inputs + num_outputs && is_ok(m->status); i++) {
        bool is_feed = i < num_inputs;
        TF_Output given = is_feed ? inputs[i] : outputs[i - num_inputs];
        tw_output output = {given.oper ? given.oper->node : NULL, given.index};
        int declared = given.index < 0 ? -1
                       : is_feed       ? find(p->feeds, p->num_feeds, output)
                                       : find(p->fetches, p->num_fetches, output);
        const char *kind = is_feed ? "feed" : "fetch", *name = given.oper ? TF_OperationName(given.oper) : "";
        if (declared < 0)
            set_status(m->status, TF_INVALID_ARGUMENT, "The %s %s:%d was not specified in partial_run_setup.", kind,
                       name, given.index);
        else if (is_feed ? p->fed[declared] : p->fetched[declared])
            set_status(m->status, TF_INVALID_ARGUMENT, "The %s %s:%d has already been %s.", kind, name, given.index,
                       is_feed ? "fed" : "fetched");
    }
}

static void take_feeds(part *m, const TF_Output *inputs, TF_Tensor *const *values, int count)
{
    partial_run *p = m->run;
    for (int i = 0; i < count && is_ok(m->status); i++) {
        tw_error error = TW_NO_ERROR;
        tw_output output = {inputs[i].oper->node, inputs[i].index};
        int feed = find(p->feeds, p->num_feeds, output);
        if (p->fed[feed])
            continue; /* twice in one call */
        tw_tensor *value = tensor_to_tower(values[i], &error);
        if (!value)
            set_error(m->status, &error);
        else if (!keep_value(p, output, value))
            set_no_memory(m->status);
        p->fed[feed] = is_ok(m->status);
        tw_tensor_release(value);
    }
}

static void ask(part *m, tw_output output)
{
    int declared = find(m->run->fetches, m->run->num_fetches, output);
    if (declared < 0) {
        set_status(m->status, TF_INVALID_ARGUMENT, "'%s:%d' was not declared by TF_SessionPRunSetup",
                   output.node ? tw_node_name(output.node) : "", output.index);
        return;
    }
    m->run->fetched[declared] = true;
    m->fetches[m->num_fetches++] = output;
    mark(m, m->now, output, true);
}

/* Targets run as soon as what they need has been fed, whether this part asks for them or not; one that it asks for too
 * early waits. */
static void ask_for_targets(part *m, const TF_Operation *const *asked, int num_asked)
{
    const partial_run *p = m->run;
    for (int i = 0; i < p->num_fetches && is_ok(m->status); i++) {
        tw_output target = p->fetches[i];
        TF_Status why = {0};
        part tried = *m;
        tried.status = &why;
        bool is_asked = false, *marks = target.index < 0 && !p->fetched[i] ? calloc((size_t)m->count + 1, 1) : NULL;
        for (int k = 0; k < num_asked; k++)
            is_asked |= asked[k] && asked[k]->node == target.node;
        if (marks && mark(&tried, marks, target, true))
            ask(m, target);
        else if (marks && is_asked && TF_GetCode(&why) != TF_INVALID_ARGUMENT)
            set_status(m->status, TF_GetCode(&why), "%s", TF_Message(&why));
        free(why.message);
        free(marks);
    }
}

static void check_targets(part *m, const TF_Operation *const *targets, int count)
{
    for (int i = 0; i < count && is_ok(m->status); i++) {
        tw_output target = {targets[i] ? targets[i]->node : NULL, -1};
        if (find(m->run->fetches, m->run->num_fetches, target) < 0)
            set_status(m->status, TF_INVALID_ARGUMENT, "target '%s' was not declared by TF_SessionPRunSetup",
                       target.node ? tw_node_name(target.node) : "");
    }
}

/* Lets a call that was refused have changed nothing: no feed is kept from it, and nothing is fetched. */
static void give_back(part *m, int num_values, const bool *fetched)
{
    partial_run *p = m->run;
    while (p->num_values > num_values) {
        kept *last = &p->values[--p->num_values];
        tw_tensor_release(last->value);
        p->fed[find(p->feeds, p->num_feeds, last->output)] = false;
    }
    memcpy(p->fetched, fetched, (size_t)p->num_fetches * sizeof *fetched);
}

/* What is computed now and needed later is fetched, too. */
static void ask_for_later(part *m)
{
    partial_run *p = m->run;
    m->num_asked = m->num_fetches;
    for (int i = 0; i < p->num_fetches && is_ok(m->status); i++)
        if (!p->fetched[i])
            mark(m, m->later, p->fetches[i], false);
    for (int i = 0; i < m->count && is_ok(m->status); i++) {
        const tw_node *node = m->graph->operations[i]->node;
        for (int k = 0; k < tw_node_num_inputs(node) && m->later[i] && !m->now[i]; k++) {
            tw_output from = tw_node_input(node, k);
            if (m->now[tw_node_number(from.node)] && find_value(p, from) < 0 && is_plain(from) &&
                find(m->fetches, m->num_fetches, from) < 0)
                m->fetches[m->num_fetches++] = from;
        }
    }
}

static void note_ran(part *m)
{
    partial_run *p = m->run;
    bool *grown = realloc(p->ran, (size_t)m->count + 1);
    if (!grown) {
        set_no_memory(m->status);
        return;
    }
    memset(grown + p->num_ran, 0, (size_t)(m->count - p->num_ran));
    p->ran = grown;
    p->num_ran = m->count;
    for (int i = 0; i < m->count; i++)
        p->ran[i] |= m->now[i];
    for (int i = 0; i < m->num_fetches && is_ok(m->status); i++)
        if (m->fetches[i].index >= 0 && m->results[i] && find_value(p, m->fetches[i]) < 0 &&
            !keep_value(p, m->fetches[i], m->results[i]))
            set_no_memory(m->status);
}

static void run_part(TF_Session *session, part *m)
{
    partial_run *p = m->run;
    m->feeds = calloc((size_t)p->num_values + 1, sizeof *m->feeds);
    m->results = calloc((size_t)m->num_fetches + 1, sizeof(tw_tensor *));
    if (!m->feeds || !m->results) {
        set_no_memory(m->status);
        return;
    }
    /* What is there already is not computed; as one cannot fetch what is fed, it is taken from where it is kept. */
    int wanted = 0;
    tw_output *fetches = calloc((size_t)m->num_fetches + 1, sizeof *fetches);
    tw_tensor **results = calloc((size_t)m->num_fetches + 1, sizeof(tw_tensor *));
    for (int i = 0; i < m->num_fetches && fetches; i++)
        if (m->fetches[i].index < 0 || find_value(p, m->fetches[i]) < 0)
            fetches[wanted++] = m->fetches[i];
    for (int i = 0; i < p->num_values; i++)
        m->feeds[m->num_feeds++] = (tw_feed){p->values[i].output, p->values[i].value};
    if (!fetches || !results)
        set_no_memory(m->status);
    else
        run_session(session, (run_settings){0}, m->feeds, m->num_feeds, fetches, wanted, results, m->status);
    for (int i = 0, at = 0; i < m->num_fetches && is_ok(m->status); i++) {
        int value = m->fetches[i].index < 0 ? -1 : find_value(p, m->fetches[i]);
        m->results[i] = value >= 0 ? tw_tensor_retain(p->values[value].value) : results[at++];
    }
    free(fetches);
    free(results);
    if (is_ok(m->status))
        note_ran(m);
}

void TF_SessionPRun(TF_Session *session, const char *handle, const TF_Output *inputs, TF_Tensor *const *input_values,
                    int ninputs, const TF_Output *outputs, TF_Tensor **output_values, int noutputs,
                    const TF_Operation *const *target_opers, int ntargets, TF_Status *status)
{
    part m = {.run = find_partial_run(session, handle), .graph = session_graph(session), .status = status};
    TF_Graph *graph = (TF_Graph *)m.graph;
    TF_SetStatus(status, TF_OK, "");
    for (int i = 0; i < noutputs; i++)
        output_values[i] = NULL;
    if (!m.run) {
        set_status(status, TF_INVALID_ARGUMENT, "Must run 'setup' before performing partial runs!");
        return;
    }
    pthread_rwlock_rdlock(&graph->lock);
    m.count = graph->num_operations;
    m.now = calloc((size_t)m.count + 1, sizeof *m.now);
    m.later = calloc((size_t)m.count + 1, sizeof *m.later);
    int outputs_in_all = 0;
    for (int i = 0; i < m.count; i++)
        outputs_in_all += tw_node_num_outputs(graph->operations[i]->node);
    m.fetches = calloc((size_t)(outputs_in_all + noutputs + m.run->num_fetches) + 1, sizeof *m.fetches);
    bool *fetched = calloc((size_t)m.run->num_fetches + 1, sizeof *fetched);
    int num_values = m.run->num_values;
    if (!m.now || !m.later || !m.fetches || !fetched)
        set_no_memory(status);
    else
        memcpy(fetched, m.run->fetched, (size_t)m.run->num_fetches * sizeof *fetched);
    if (is_ok(status))
        check_part(&m, inputs, ninputs, outputs, noutputs);
    check_targets(&m, target_opers, ntargets);
    if (is_ok(status))
        take_feeds(&m, inputs, input_values, ninputs);
    for (int i = 0; i < noutputs && is_ok(status); i++)
        ask(&m, (tw_output){outputs[i].oper ? outputs[i].oper->node : NULL, outputs[i].index});
    if (is_ok(status))
        ask_for_targets(&m, target_opers, ntargets);
    if (is_ok(status))
        ask_for_later(&m);
    else if (fetched)
        give_back(&m, num_values, fetched);
    free(fetched);
    pthread_rwlock_unlock(&graph->lock);
    if (is_ok(status))
        run_part(session, &m);
    for (int i = 0; i < noutputs && is_ok(status); i++)
        if (!(output_values[i] = tensor_from_tower(tw_tensor_retain(m.results[i]))))
            set_no_memory(status);
    for (int i = 0; m.results && i < m.num_fetches; i++)
        tw_tensor_release(m.results[i]);
    free(m.now);
    free(m.later);
    free(m.feeds);
    free(m.fetches);
    free(m.results);
}
