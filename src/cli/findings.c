/* findings.c - see findings.h. */
#include "findings.h"

#include "help.h"
#include "json.h"

#include <stdarg.h>
#include <string.h>

finding *find(findings *all, const char *section, const char *name, verdict verdict, const char *format, ...)
{
    static finding dropped;
    finding *item = all->count < MOST_FINDINGS ? &all->items[all->count++] : &dropped;
    va_list arguments;
    *item = (finding){.section = section, .verdict = verdict};
    snprintf(item->name, sizeof item->name, "%s", name);
    va_start(arguments, format);
    vsnprintf(item->text, sizeof item->text, format, arguments);
    va_end(arguments);
    return item;
}

void advise(finding *finding, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(finding->advice, sizeof finding->advice, format, arguments);
    va_end(arguments);
}

verdict worst(const findings *all)
{
    verdict worst = VERDICT_OK;
    for (int i = 0; i < all->count; i++)
        if (all->items[i].verdict > worst && all->items[i].verdict != VERDICT_NONE)
            worst = all->items[i].verdict;
    return worst;
}

/* ---- text -------------------------------------------------------------------------------------------------- */

enum { TEXT_COLUMN = 22 };

static void print_findings(const findings *all)
{
    static const char *const marks[] = {"ok", "-", "!", "FAILS"}; /* ORDER VERDICT */
    const char *section = "";
    for (int i = 0; i < all->count; i++) {
        const finding *f = &all->items[i];
        if (strcmp(f->section, section) != 0)
            printf("%s%s\n", i ? "\n" : "", f->section);
        section = f->section;
        printf("  %-5s %-13s ", marks[f->verdict], f->name);
        if (strlen(f->name) > 13)
            printf("\n%*s", TEXT_COLUMN, "");
        print_wrapped(stdout, f->text, strlen(f->text), TEXT_COLUMN, TEXT_COLUMN, HELP_WIDTH);
    }
}

/* Numbered, what is broken first. */
static void print_advice(const findings *all)
{
    int number = 0;
    for (int level = VERDICT_BROKEN; level >= VERDICT_OK; level--)
        for (int i = 0; i < all->count; i++) {
            const finding *f = &all->items[i];
            if (!f->advice[0] || (int)f->verdict != level)
                continue;
            if (!number++)
                printf("\nwhat to do\n");
            int column = printf("  %d. %s:", number, f->name);
            print_wrapped(stdout, f->advice, strlen(f->advice), column, 5, HELP_WIDTH);
        }
}

void findings_text(const findings *all)
{
    print_findings(all);
    print_advice(all);
    printf("\n%s\n", worst(all) == VERDICT_BROKEN    ? "training does NOT work here"
                     : worst(all) == VERDICT_WARNING ? "training works; see what stands behind '!'"
                                                     : "training works");
}

/* ---- JSON -------------------------------------------------------------------------------------------------- */

void findings_json(const findings *all)
{
    static const char *const names[] = {"ok", "none", "warning", "broken"}; /* ORDER VERDICT */
    json out = {.file = stdout};
    json_begin(&out, NULL, '{');
    json_text(&out, "version", tw_version());
    json_flag(&out, "training_works", worst(all) != VERDICT_BROKEN);
    json_begin(&out, "findings", '[');
    for (int i = 0; i < all->count; i++) {
        const finding *f = &all->items[i];
        json_begin(&out, NULL, '{');
        json_text(&out, "section", f->section);
        json_text(&out, "name", f->name);
        json_text(&out, "verdict", names[f->verdict]);
        json_text(&out, "text", f->text);
        json_text(&out, "advice", f->advice[0] ? f->advice : NULL);
        json_end(&out);
    }
    json_end(&out);
    json_end(&out);
}
