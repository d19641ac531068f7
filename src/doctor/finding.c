/* The list of what was found.
 * Not for looking: look_*.c. */
#include "doctor/finding.h"

#include "base/memory.h"

#include <stdarg.h>

void finding_add(struct findings *findings, enum finding_kind kind, const char *check, const char *fix,
                 const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    struct finding finding = {
        .kind = kind,
        .check = xstrdup(check),
        .text = xvasprintf(format, arguments),
        .fix = fix != NULL ? xstrdup(fix) : NULL,
    };
    va_end(arguments);
    findings->items = xreallocarray(findings->items, findings->count + 1, sizeof(finding));
    findings->items[findings->count++] = finding;
}

const char *finding_word(enum finding_kind kind)
{
    static const char *const words[] = {
        [FINDING_OK] = "ok",
        [FINDING_BROKEN] = "broken",
        [FINDING_NOT_SET_UP] = "not set up",
        [FINDING_UNSEEN] = "not seen",
    };
    return words[kind];
}

size_t finding_count(const struct findings *findings, enum finding_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < findings->count; i++) {
        count += findings->items[i].kind == kind;
    }
    return count;
}

bool finding_healthy(const struct findings *findings)
{
    return finding_count(findings, FINDING_BROKEN) + finding_count(findings, FINDING_NOT_SET_UP) == 0;
}

void finding_reset(struct findings *findings)
{
    for (size_t i = 0; i < findings->count; i++) {
        free(findings->items[i].check);
        free(findings->items[i].text);
        free(findings->items[i].fix);
    }
    free(findings->items);
    *findings = (struct findings){0};
}
