/* log.c - the placement log, in TensorFlow's form. */
#include "place/place.h"

#include "base/text.h"

#include <string.h>

void twi_placement_log(const tw_graph *graph, const tw_devices *devices, const twi_placement *placement,
                       twi_line_function *line, void *user)
{
    twi_text text = {0};
    bool any = tw_devices_count(devices, "CPU") < devices->count;
    line(user, any ? "Device mapping:" : "Device mapping: no known devices.");
    for (int i = 0; i < devices->count; i++) {
        const twi_device *d = devices->items[i];
        if (strcmp(d->name.type, "CPU") == 0)
            continue;
        text.size = 0;
        twi_text_printf(&text, "%s -> %s", d->text, d->description);
        line(user, twi_text_string(&text));
    }
    for (int i = 0; i < placement->count; i++) {
        const tw_node *node = graph->nodes.items[placement->order[i]];
        if (placement->devices[node->id] < 0)
            continue;
        text.size = 0;
        twi_text_printf(&text, "%s: (%s): %s", node->name, node->op->name,
                        devices->items[placement->devices[node->id]]->text);
        line(user, twi_text_string(&text));
    }
    twi_text_free(&text);
}
