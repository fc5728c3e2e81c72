/* keys.c - see keys.h. */
#include "keys.h"

#include "command.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST_NAME = 512 };

/* Whether a node reads a checkpoint: a file's name, names of tensors, which of their parts; it gives them by types. */
static bool is_reader(const tw_node *node)
{
    return tw_node_num_inputs(node) == 3 && tw_node_attr(node, "dtypes");
}

/* Which of a checkpoint's tensors an input is, if a node that reads one gives it. */
static const char *key_read(const tw_node *node, int input)
{
    tw_output value = tw_node_input(node, input);
    while (tw_node_num_inputs(value.node) == 1)
        value = tw_node_input(value.node, 0);
    const tw_attr *names = is_reader(value.node) ? tw_node_attr(tw_node_input(value.node, 1).node, "value") : NULL;
    if (!names || names->kind != TW_ATTR_TENSOR || tw_tensor_dtype(names->tensor) != TW_STRING || value.index < 0 ||
        value.index >= tw_tensor_elements(names->tensor))
        return NULL;
    return ((const tw_string *)tw_tensor_data(names->tensor))[value.index].data;
}

bool keys_find(const char *command, const tw_graph *graph, keys *found)
{
    found->num_nodes = tw_graph_num_nodes(graph);
    for (int part = 0; part < 2; part++)
        found->of_nodes[part] = calloc((size_t)found->num_nodes + 1, sizeof *found->of_nodes[part]);
    if (!found->of_nodes[0] || !found->of_nodes[1])
        return complain(command, "out of memory");
    for (int i = 0; i < found->num_nodes; i++) {
        const tw_node *node = tw_graph_node(graph, i);
        int inputs = tw_node_num_inputs(node); /* 2: a variable is assigned; 3: a table takes keys and values */
        bool takes = (inputs == 2 || inputs == 3) && tw_node_num_outputs(node) == 0;
        for (int part = 0; part < inputs - 1 && takes; part++) {
            const char **key = &found->of_nodes[part][tw_node_number(tw_node_input(node, 0).node)];
            *key = *key ? *key : key_read(node, 1 + part);
        }
    }
    return true;
}

void keys_free(keys *keys)
{
    for (int part = 0; part < 2; part++)
        free(keys->of_nodes[part]);
}

const char *keys_of(const keys *keys, const tw_node *node, int part)
{
    int number = tw_node_number(node);
    return number < keys->num_nodes ? keys->of_nodes[part][number] : NULL;
}

const char *key_by_name(tw_checkpoint *checkpoint, const tw_variable *variable)
{
    char name[LONGEST_NAME];
    const char *key = NULL, *number = strrchr(variable->name, '_');
    bool counted = number && number[1] && !number[1 + strspn(number + 1, "0123456789")];
    tw_status status = tw_checkpoint_key(checkpoint, variable->name, &key, NULL);
    if (status == TW_OK && !key && counted) {
        snprintf(name, sizeof name, "%.*s", (int)(number - variable->name), variable->name);
        status = tw_checkpoint_key(checkpoint, name, &key, NULL);
    }
    if (status != TW_OK || !key)
        return NULL;
    return tw_checkpoint_dtype(checkpoint, tw_checkpoint_find(checkpoint, key)) == variable->dtype ? key : NULL;
}

const char *keys_of_variable(const keys *keys, tw_checkpoint *checkpoint, const tw_variable *variable)
{
    const char *key = keys_of(keys, variable->handle.node, 0);
    if (!key || tw_checkpoint_find(checkpoint, key) < 0)
        key = key_by_name(checkpoint, variable);
    int at = key ? -1 : tw_checkpoint_find(checkpoint, variable->name);
    return at >= 0 ? tw_checkpoint_name(checkpoint, at) : key;
}
