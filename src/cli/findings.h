/* findings.h - what `tower doctor` finds, a line each, to be printed for people or programs once all are there.
 * Never here:  looking. */
#ifndef CLI_FINDINGS_H
#define CLI_FINDINGS_H

#include <tower/status.h>

/* ORDER VERDICT */
typedef enum verdict {
    VERDICT_OK,
    VERDICT_NONE,    /* it is not here, and need not be */
    VERDICT_WARNING, /* training works, but not as well as it might */
    VERDICT_BROKEN,  /* training does not work */
} verdict;

typedef struct finding {
    const char *section;
    char name[48];
    verdict verdict;
    char text[512];
    char advice[512]; /* what to do; "" nothing */
} finding;

enum { MOST_FINDINGS = 128 };

typedef struct findings {
    finding items[MOST_FINDINGS];
    int count;
} findings;

/* Adds one; more than fit are dropped. It is there until the next is added, for advice. */
finding *find(findings *all, const char *section, const char *name, verdict verdict, const char *format, ...)
    TW_PRINTF(5, 6);
void advise(finding *finding, const char *format, ...) TW_PRINTF(2, 3);

/* How bad it is all in all. */
verdict worst(const findings *all);

void findings_text(const findings *all);
void findings_json(const findings *all);

/* Those of the processor, of memory and of the system's limits (doctor_machine.c); of files and programs beside
 * (doctor_files.c). */
void look_at_machine(findings *all);
void look_at_files(findings *all);

#endif
