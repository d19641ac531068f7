/* The limits of a box: their grammar, and which of flag, environment and file counts.
 * Not for whether a host can enforce them (ready.c finds that out in the guest). */
#include "box/limits.h"

#include "base/memory.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *unit;
    int64_t factor;
} units[] = {
    {"B", 1},
    {"kB", 1000},
    {"MB", 1000 * 1000},
    {"GB", 1000LL * 1000 * 1000},
    {"TB", 1000LL * 1000 * 1000 * 1000},
    {"KiB", 1024},
    {"MiB", 1024 * 1024},
    {"GiB", 1024LL * 1024 * 1024},
    {"TiB", 1024LL * 1024 * 1024 * 1024},
};

bool limits_parse_size(const char *text, int64_t *ret_bytes)
{
    size_t digits = strspn(text, "0123456789");
    uint64_t number;

    if (digits == 0 || digits > 18) {
        return false;
    }
    CLEANUP(freep) char *figure = xstrndup(text, digits);

    if (!text_parse_number(figure, 1, INT64_MAX, &number)) {
        return false;
    }
    for (size_t i = 0; i < ARRAY_LENGTH(units); i++) {
        if (text_equal(text + digits, units[i].unit)) {
            if ((int64_t)number > INT64_MAX / units[i].factor) {
                return false;
            }
            *ret_bytes = (int64_t)number * units[i].factor;
            return true;
        }
    }
    return false;
}

int limits_check_cpu(const char *what, const char *text, struct error *err)
{
    uint64_t number;

    if (text_parse_number(text, 1, LIMITS_CPU_MAXIMUM, &number)) {
        return 0;
    }
    CLEANUP(freep) char *shown = text_sanitise(text, strnlen(text, 40));
    return error_set(err, ERR_USAGE, "%s: '%s' is not a number of CPUs (1 to %d)", what, shown, LIMITS_CPU_MAXIMUM);
}

static int check_size(const char *what, const char *text, int64_t minimum, struct error *err)
{
    CLEANUP(freep) char *shown = text_sanitise(text, strnlen(text, 40));
    int64_t bytes;

    if (!limits_parse_size(text, &bytes)) {
        return error_set(err, ERR_USAGE, "%s: '%s' is not a size: a whole number and a unit, such as 512MiB or 4GiB",
                         what, shown);
    }
    if (bytes < minimum) {
        return error_set(err, ERR_USAGE, "%s: %s is too small for a box: at least %lldMiB", what, shown,
                         (long long)(minimum / (1024 * 1024)));
    }
    return 0;
}

int limits_check_memory(const char *what, const char *text, struct error *err)
{
    return check_size(what, text, LIMITS_MEMORY_MINIMUM, err);
}

int limits_check_disk(const char *what, const char *text, struct error *err)
{
    return check_size(what, text, LIMITS_DISK_MINIMUM, err);
}


static int choose(const char *flag, const char *flag_name, const char *variable, const char *file, int (*check)(const char *, const char *, struct error *),
                  char **ret_text, struct error *err)
{
    const char *environment = getenv(variable);
    const char *chosen = flag ? flag : text_is_empty(environment) ? file : environment;

    if (chosen && chosen != file && check(flag ? flag_name : variable, chosen, err) < 0) {
        return -1;
    }
    *ret_text = chosen ? xstrdup(chosen) : NULL;
    return 0;
}

int limits_choose(const struct limits *flags, const struct limits *file, struct limits *ret_limits,
                  struct error *err)
{
    CLEANUP(limits_reset) struct limits limits = {0};

    if (choose(flags->cpu, "--cpu", "BOX_CPU", file->cpu, limits_check_cpu, &limits.cpu, err) < 0 ||
        choose(flags->memory, "--memory", "BOX_MEMORY", file->memory, limits_check_memory, &limits.memory, err) < 0 ||
        choose(flags->disk, "--disk", "BOX_DISK", file->disk, limits_check_disk, &limits.disk, err) < 0) {
        return -1;
    }
    *ret_limits = limits;
    limits = (struct limits){0};
    return 0;
}

void limits_reset(struct limits *limits)
{
    free(limits->cpu);
    free(limits->memory);
    free(limits->disk);
    *limits = (struct limits){0};
}
