/* layout.c - where boxes and the edges between them are drawn. Graphviz does it well, where it is installed; otherwise
 * each box stands a layer below all it takes something from, and in its layer near those. */
#include "report.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double box_height = 26, layer_gap = 44, box_gap = 18, letter = 6.6;

static double width_of(const char *label)
{
    return 18 + letter * (double)strlen(label);
}

/* ---- Graphviz -------------------------------------------------------------------------------------------------- */

static const double inch = 72;

static bool ask(FILE *to, const report_box *boxes, int num_boxes, const report_edge *edges, int num_edges)
{
    fprintf(to, "digraph g { nodesep=0.2; ranksep=0.45; node [shape=box, fixedsize=true, label=\"\"];\n");
    for (int i = 0; i < num_boxes; i++)
        fprintf(to, "n%d [width=%.3f, height=%.3f];\n", i, width_of(boxes[i].label) / inch, box_height / inch);
    for (int i = 0; i < num_edges; i++)
        fprintf(to, "n%d -> n%d;\n", edges[i].from, edges[i].to);
    fprintf(to, "}\n");
    return !ferror(to);
}

/* The edge of a line; each pair of groups has one. */
static report_edge *edge_of(report_edge *edges, int num_edges, int from, int to)
{
    for (int i = 0; i < num_edges; i++)
        if (edges[i].from == from && edges[i].to == to)
            return &edges[i];
    return NULL;
}

static void take_edge(const char *line, report_edge *edges, int num_edges, double height)
{
    int from, to, count, used;
    if (sscanf(line, "edge n%d n%d %d%n", &from, &to, &count, &used) != 3)
        return;
    report_edge *e = edge_of(edges, num_edges, from, to);
    line += used;
    for (int i = 0; e && i < count; i++) {
        double x, y;
        if (sscanf(line, "%lf %lf%n", &x, &y, &used) != 2)
            return;
        line += used;
        if (e->num_points < REPORT_CURVE) {
            e->points[e->num_points][0] = x * inch;
            e->points[e->num_points++][1] = (height - y) * inch;
        }
    }
    while (e && e->num_points > 3 && e->num_points % 3 != 1) /* one that was cut ends where a curve does */
        e->num_points--;
}

/* "graph 1 W H", "node nI X Y W H ...", "edge nI nK COUNT X Y ...": inches, from the bottom left corner. */
static bool take_answer(FILE *answer, report_box *boxes, int num_boxes, report_edge *edges, int num_edges,
                        double *width, double *height)
{
    char line[1 << 14];
    int placed = 0, i;
    double scale, w = 0, h = 0, x, y, box_w, box_h;
    while (fgets(line, sizeof line, answer)) {
        if (sscanf(line, "graph %lf %lf %lf", &scale, &w, &h) == 3)
            continue;
        if (sscanf(line, "node n%d %lf %lf %lf %lf", &i, &x, &y, &box_w, &box_h) == 5 && i >= 0 && i < num_boxes) {
            boxes[i] = (report_box){boxes[i].label, x * inch, (h - y) * inch, box_w * inch, box_h * inch};
            placed++;
        } else {
            take_edge(line, edges, num_edges, h);
        }
    }
    *width = w * inch;
    *height = h * inch;
    return placed == num_boxes;
}

static bool with_graphviz(report_box *boxes, int num_boxes, report_edge *edges, int num_edges, double *width,
                          double *height)
{
    char path[] = "/tmp/tower-report-XXXXXX", command[64];
    int file = mkstemp(path);
    FILE *question = file >= 0 ? fdopen(file, "w") : NULL;
    bool good = question && ask(question, boxes, num_boxes, edges, num_edges);
    if (question)
        good = fclose(question) == 0 && good;
    snprintf(command, sizeof command, "dot -Tplain %s 2>/dev/null", path);
    FILE *answer = good ? popen(command, "r") : NULL;
    good = answer && take_answer(answer, boxes, num_boxes, edges, num_edges, width, height);
    if (answer)
        good = pclose(answer) == 0 && good;
    if (file >= 0)
        unlink(path);
    return good;
}

/* ---- layers of our own ----------------------------------------------------------------------------------------- */

/* Below all it takes something from. Groups may stand in circles, so it is done a bounded number of times. */
static int find_layers(int *layers, int num_boxes, const report_edge *edges, int num_edges)
{
    int most = 0;
    bool changed = true;
    for (int round = 0; round < num_boxes && changed; round++) {
        changed = false;
        for (int i = 0; i < num_edges; i++) {
            int wanted = layers[edges[i].from] + 1;
            if (edges[i].from < edges[i].to && layers[edges[i].to] < wanted) { /* one that goes back lifts nobody */
                layers[edges[i].to] = wanted;
                changed = true;
            }
        }
    }
    for (int i = 0; i < num_boxes; i++)
        most = layers[i] > most ? layers[i] : most;
    return most;
}

/* The mean place of those it takes something from, for the order in its layer. */
static double wish_of(int box, const report_box *boxes, const report_edge *edges, int num_edges)
{
    double sum = 0;
    int count = 0;
    for (int i = 0; i < num_edges; i++)
        if (edges[i].to == box && boxes[edges[i].from].width > 0) {
            sum += boxes[edges[i].from].x;
            count++;
        }
    return count ? sum / count : 0;
}

typedef struct wish {
    double x;
    int box;
} wish;

static int by_wish(const void *a, const void *b)
{
    const wish *x = a, *y = b;
    return x->x < y->x ? -1 : x->x > y->x ? 1 : x->box - y->box;
}

static double place_layer(wish *wishes, int count, report_box *boxes, double y)
{
    double x = 0;
    qsort(wishes, (size_t)count, sizeof *wishes, by_wish);
    for (int i = 0; i < count; i++) {
        report_box *b = &boxes[wishes[i].box];
        b->width = width_of(b->label);
        b->height = box_height;
        b->x = x + b->width / 2;
        b->y = y;
        x += b->width + box_gap;
    }
    return x - box_gap;
}

static void draw_lines(const report_box *boxes, report_edge *edges, int num_edges)
{
    for (int i = 0; i < num_edges; i++) {
        const report_box *a = &boxes[edges[i].from], *b = &boxes[edges[i].to];
        bool down = b->y > a->y;
        double from = a->y + (down ? a->height : -a->height) / 2, to = b->y + (down ? -b->height : b->height) / 2;
        double bend = (to - from) / 2;
        const double points[4][2] = {{a->x, from}, {a->x, from + bend}, {b->x, to - bend}, {b->x, to}};
        edges[i].num_points = 4;
        memcpy(edges[i].points, points, sizeof points);
    }
}

static bool in_layers(report_box *boxes, int num_boxes, report_edge *edges, int num_edges, double *width,
                      double *height)
{
    int *layers = calloc((size_t)num_boxes, sizeof *layers);
    wish *wishes = calloc((size_t)num_boxes, sizeof *wishes);
    *width = *height = 0;
    for (int i = 0; i < num_boxes; i++)
        boxes[i].width = 0;
    int last = layers && wishes ? find_layers(layers, num_boxes, edges, num_edges) : -1;
    for (int layer = 0; layer <= last; layer++) {
        int count = 0;
        for (int i = 0; i < num_boxes; i++)
            if (layers[i] == layer)
                wishes[count++] = (wish){wish_of(i, boxes, edges, num_edges), i};
        double used = place_layer(wishes, count, boxes, box_height / 2 + layer * (box_height + layer_gap));
        *width = used > *width ? used : *width;
    }
    *height = last * (box_height + layer_gap) + box_height;
    if (last >= 0)
        draw_lines(boxes, edges, num_edges);
    free(layers);
    free(wishes);
    return last >= 0;
}

bool report_layout(report_box *boxes, int num_boxes, report_edge *edges, int num_edges, double *width, double *height,
                   const char **by)
{
    *by = "Graphviz";
    if (with_graphviz(boxes, num_boxes, edges, num_edges, width, height))
        return true;
    *by = "layers";
    for (int i = 0; i < num_edges; i++)
        edges[i].num_points = 0;
    return in_layers(boxes, num_boxes, edges, num_edges, width, height);
}
