#ifndef BOX_INCUS_METRICS_H
#define BOX_INCUS_METRICS_H

#include "incus/client.h"

#include <stddef.h>

/* What instances use of their host, all of them in one request. The daemon renews its numbers every eight seconds. */
struct metrics_instance {
    char *name;
    /* Since it started; negative where the daemon cannot tell (no cgroup controller, a VM without its agent). */
    double cpu_seconds;
    double memory_used, memory_total; /* bytes, now */
    double disk_read, disk_written;   /* bytes */
    double network_in, network_out;   /* bytes, its loopback not counted */
    double processes;                 /* now */
};

struct metrics {
    struct metrics_instance *instances;
    size_t count;
};

/* Only running instances are in it. The caller resets. */
int metrics_read(struct client *client, struct metrics *ret_metrics, struct error *err);

/* The same from the daemon's text (Prometheus' format): lines that it does not know are passed over. */
void metrics_parse(const char *text, size_t length, struct metrics *ret_metrics);

/* By name, or NULL. Borrowed. */
const struct metrics_instance *metrics_find(const struct metrics *metrics, const char *name);

void metrics_reset(struct metrics *metrics);

#endif
