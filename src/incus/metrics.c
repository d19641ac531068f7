/* The daemon's metrics, one row an instance.
 * Not for: showing them, nor rates: that needs two looks. */
#include "incus/metrics.h"

#include "base/memory.h"
#include "base/text.h"
#include "incus/call.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define CEILING ((size_t)64 * 1024 * 1024)

/* Which series count for which number: only where `label` is not one of `but`. */
static const struct {
    const char *series;
    size_t offset;
    const char *label;
    const char *but[3];
} rows[] = {
#define NUMBER(member) offsetof(struct metrics_instance, member)
    {"incus_cpu_seconds_total", NUMBER(cpu_seconds), "mode", {"idle", "iowait", NULL}},
    {"incus_memory_MemTotal_bytes", NUMBER(memory_total), NULL, {NULL}},
    {"incus_memory_MemAvailable_bytes", NUMBER(memory_used), NULL, {NULL}}, /* turned round at the end */
    {"incus_disk_read_bytes_total", NUMBER(disk_read), NULL, {NULL}},
    {"incus_disk_written_bytes_total", NUMBER(disk_written), NULL, {NULL}},
    {"incus_network_receive_bytes_total", NUMBER(network_in), "device", {"lo", NULL}},
    {"incus_network_transmit_bytes_total", NUMBER(network_out), "device", {"lo", NULL}},
    {"incus_procs_total", NUMBER(processes), NULL, {NULL}},
#undef NUMBER
};

static struct metrics_instance *instance_of(struct metrics *metrics, const char *name)
{
    /* The daemon tells series after series, so the last that was asked for is no help; there are few instances. */
    for (size_t i = 0; i < metrics->count; i++) {
        if (text_equal(metrics->instances[i].name, name)) {
            return &metrics->instances[i];
        }
    }
    metrics->instances = xreallocarray(metrics->instances, metrics->count + 1, sizeof(*metrics->instances));
    struct metrics_instance *instance = &metrics->instances[metrics->count++];
    *instance = (struct metrics_instance){xstrdup(name), -1, -1, -1, -1, -1, -1, -1, -1};
    return instance;
}

/* The value of a label within `name="a",device="eth0"`; the caller frees. Nothing that we ask for holds a quote. */
static char *label_of(const char *labels, size_t length, const char *key)
{
    size_t size = strlen(key);
    const char *end = labels + length;
    while (labels < end) {
        const char *equals = memchr(labels, '=', (size_t)(end - labels));
        if (!equals || end - equals < 3 || equals[1] != '"') {
            return NULL;
        }
        const char *value = equals + 2;
        const char *close = memchr(value, '"', (size_t)(end - value));
        if (!close) {
            return NULL;
        }
        if ((size_t)(equals - labels) == size && memcmp(labels, key, size) == 0) {
            return xstrndup(value, (size_t)(close - value));
        }
        labels = close + 1 < end && close[1] == ',' ? close + 2 : close + 1;
    }
    return NULL;
}

static bool counts(size_t row, const char *labels, size_t length)
{
    if (!rows[row].label) {
        return true;
    }
    CLEANUP(freep) char *value = label_of(labels, length, rows[row].label);
    for (size_t i = 0; rows[row].but[i]; i++) {
        if (text_equal(value, rows[row].but[i])) {
            return false;
        }
    }
    return true;
}

/* series{labels} value */
static void parse_line(const char *line, struct metrics *metrics)
{
    size_t series = strcspn(line, "{");
    const char *close = strrchr(line, '}');
    if (line[series] != '{' || !close || close[1] != ' ') {
        return;
    }
    const char *labels = line + series + 1;
    size_t length = (size_t)(close - labels);
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        if (strlen(rows[i].series) != series || strncmp(line, rows[i].series, series) != 0) {
            continue;
        }
        CLEANUP(freep) char *name = label_of(labels, length, "name");
        char *rest = NULL;
        double value = strtod(close + 2, &rest);
        if (name && rest != close + 2 && isfinite(value) && value >= 0 && counts(i, labels, length)) {
            double *number = (double *)((char *)instance_of(metrics, name) + rows[i].offset);
            *number = *number < 0 ? value : *number + value;
        }
        return;
    }
}

/* Where the host cannot tell what is used, the daemon says that more is free than there is. */
static void turn_memory_round(struct metrics_instance *instance)
{
    double available = instance->memory_used;
    bool known = available >= 0 && instance->memory_total > 0 && available <= instance->memory_total;
    instance->memory_used = known ? instance->memory_total - available : -1;
}

void metrics_parse(const char *text, size_t length, struct metrics *ret_metrics)
{
    struct metrics metrics = {0};
    CLEANUP(freep) char *copy = xstrndup(text, length);
    char *rest = NULL;
    for (char *line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (*line != '#') {
            parse_line(line, &metrics);
        }
    }
    for (size_t i = 0; i < metrics.count; i++) {
        turn_memory_round(&metrics.instances[i]);
    }
    *ret_metrics = metrics;
}

int metrics_read(struct client *client, struct metrics *ret_metrics, struct error *err)
{
    CLEANUP(http_answer_reset) struct http_answer http = {0};
    const struct call call = {.method = "GET", .path = "/1.0/metrics", .ceiling = CEILING};
    if (call_send_raw(client, &call, &http, err) < 0) {
        return error_wrap(err, "cannot read what instances use");
    }
    metrics_parse(http.body.data ? http.body.data : "", http.body.length, ret_metrics);
    return 0;
}

const struct metrics_instance *metrics_find(const struct metrics *metrics, const char *name)
{
    for (size_t i = 0; i < metrics->count; i++) {
        if (text_equal(metrics->instances[i].name, name)) {
            return &metrics->instances[i];
        }
    }
    return NULL;
}

void metrics_reset(struct metrics *metrics)
{
    for (size_t i = 0; i < metrics->count; i++) {
        free(metrics->instances[i].name);
    }
    free(metrics->instances);
    *metrics = (struct metrics){0};
}
