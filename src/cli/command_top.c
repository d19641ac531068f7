/* `box top`: what running boxes use of this host, refreshed in place.
 * Not for: what runs in a box; `box exec BOX -- top` tells. */
#include "base/cancel.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/box.h"
#include "cli/amount.h"
#include "cli/command.h"
#include "cli/listing.h"
#include "incus/metrics.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#define INTERVAL 10 /* seconds: the daemon renews its numbers every eight */

/* One look at all boxes. */
struct look {
    struct box **boxes;
    size_t count;
    struct metrics metrics;
    int64_t when;
};

static void look_reset(struct look *look)
{
    box_list_free(look->boxes, look->count);
    metrics_reset(&look->metrics);
    *look = (struct look){0};
}

static int take(struct client *client, struct look *ret_look, struct error *err)
{
    CLEANUP(look_reset) struct look look = {0};
    if (box_list(client, &look.boxes, &look.count, err) < 0 || metrics_read(client, &look.metrics, err) < 0) {
        return -1;
    }
    look.when = clock_now();
    *ret_look = look;
    look = (struct look){0};
    return 0;
}

/* "-" where nobody can tell. */
static char *amount(double bytes)
{
    return bytes < 0 ? xstrdup("-") : amount_describe((uint64_t)bytes);
}

/* Of one CPU, since the look before; negative where that cannot be told. */
static double cpu_share(const struct look *now, const struct look *before, const char *name)
{
    const struct metrics_instance *new = metrics_find(&now->metrics, name);
    const struct metrics_instance *old = before ? metrics_find(&before->metrics, name) : NULL;
    if (!new || !old || new->cpu_seconds < 0 || old->cpu_seconds < 0 || new->cpu_seconds < old->cpu_seconds ||
        now->when <= before->when) {
        return -1;
    }
    return (new->cpu_seconds - old->cpu_seconds) * 1000 / (double)(now->when - before->when);
}

static void add_row(struct listing *table, const struct look *now, const struct look *before, const struct box *box)
{
    const struct metrics_instance *use = metrics_find(&now->metrics, box->name);
    if (!use) {
        listing_row(table, box->name, "-", "-", "-", "-", "-", "-", "-", "-", NULL);
        return;
    }
    double share = cpu_share(now, before, box->name);
    CLEANUP(freep) char *cpu = share < 0 ? xstrdup("-") : xasprintf("%.0f%%", share * 100);
    CLEANUP(freep) char *time = use->cpu_seconds < 0 ? xstrdup("-") : xasprintf("%.1f s", use->cpu_seconds);
    CLEANUP(freep) char *memory = amount(use->memory_used);
    CLEANUP(freep) char *processes = use->processes < 0 ? xstrdup("-") : xasprintf("%.0f", use->processes);
    CLEANUP(freep) char *in = amount(use->network_in);
    CLEANUP(freep) char *out = amount(use->network_out);
    CLEANUP(freep) char *read = amount(use->disk_read);
    CLEANUP(freep) char *written = amount(use->disk_written);
    listing_row(table, box->name, cpu, time, memory, processes, in, out, read, written, NULL);
}

static size_t print_table(FILE *out, const struct look *now, const struct look *before)
{
    CLEANUP(listing_reset) struct listing table = {0};
    size_t running = 0;
    listing_row(&table, "NAME", "CPU", "TIME", "MEMORY", "PROCESSES", "NET IN", "NET OUT", "DISK READ", "DISK WRITTEN",
                NULL);
    for (size_t i = 0; i < now->count; i++) {
        if (now->boxes[i]->running) {
            add_row(&table, now, before, now->boxes[i]);
            running++;
        }
    }
    if (running) {
        listing_print(&table, out);
    }
    return running;
}

static json_t *number(double value)
{
    return value < 0 ? json_null() : json_integer((json_int_t)value);
}

static void print_json(struct context *context, const struct look *now)
{
    CLEANUP(json_freep) json_t *list = json_array();
    for (size_t i = 0; i < now->count; i++) {
        const struct metrics_instance *use = metrics_find(&now->metrics, now->boxes[i]->name);
        if (!now->boxes[i]->running || !use) {
            continue;
        }
        json_array_append_new(list,
                              json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", now->boxes[i]->name,
                                        "cpu_seconds", use->cpu_seconds < 0 ? json_null() : json_real(use->cpu_seconds),
                                        "memory_used", number(use->memory_used), "memory_total",
                                        number(use->memory_total), "processes", number(use->processes), "network_in",
                                        number(use->network_in), "network_out", number(use->network_out), "disk_read",
                                        number(use->disk_read), "disk_written", number(use->disk_written)));
    }
    context_print_json(context, list);
}

static int once(struct context *context, struct client *client, struct error *err)
{
    CLEANUP(look_reset) struct look look = {0};
    if (take(client, &look, err) < 0) {
        return -1;
    }
    if (context->json) {
        print_json(context, &look);
    } else if (!print_table(context->out, &look, NULL)) {
        narrate_note(context->narrator, "no box runs; to mint one: box new NAME");
    }
    return 0;
}

/* Until Ctrl-C. What is shown stays on the screen; nothing of the terminal is changed, so nothing is to be restored. */
static int watch(struct context *context, struct client *client, struct error *err)
{
    uint64_t interval = option_number(&context->options, "interval", INTERVAL);
    CLEANUP(look_reset) struct look before = {0};
    for (;;) {
        CLEANUP(look_reset) struct look now = {0};
        if (take(client, &now, err) < 0) {
            if (cancel_requested()) {
                error_reset(err);
                return 0;
            }
            return -1;
        }
        (void)fputs("\033[H\033[2J", context->out);
        if (!print_table(context->out, &now, before.when ? &before : NULL)) {
            (void)fputs("no box runs\n", context->out);
        }
        (void)fprintf(context->out, "\nevery %llu s; Ctrl-C ends\n", (unsigned long long)interval);
        if (fflush(context->out) != 0) {
            return 0; /* main says so */
        }
        look_reset(&before);
        before = now;
        now = (struct look){0};
        struct pollfd cancel = {.fd = cancel_fd(), .events = POLLIN};
        while (poll(&cancel, 1, (int)interval * 1000) < 0 && errno == EINTR) {
        }
        if (cancel_requested()) {
            return 0;
        }
    }
}

static int run(struct context *context, struct error *err)
{
    const char *term = getenv("TERM");
    struct client *client = NULL;
    if (context_client(context, &client, err) < 0) {
        return -1;
    }
    bool in_place = isatty(STDOUT_FILENO) && !text_is_empty(term) && !text_equal(term, "dumb");
    if (!in_place || context->json || option_given(&context->options, "once")) {
        return once(context, client, err);
    }
    return watch(context, client, err);
}

static const struct option_row options[] = {
    {.name = "once", .kind = OPTION_FLAG, .letter = '1', .help = "show it once and end, also on a terminal"},
    {.name = "interval",
     .kind = OPTION_NUMBER,
     .value = "S",
     .letter = 'd',
     .minimum = 1,
     .maximum = 3600,
     .help = "seconds between two looks (10)"},
    {0},
};

const struct command command_top = {
    .name = "top",
    .section = SECTION_DAILY,
    .arguments = "",
    .summary = "show what running boxes use: CPU, memory, network, disk",
    .help = "On a terminal it is renewed in place until Ctrl-C; elsewhere it is shown once.\n"
            "CPU is the share of one CPU since the look before, the rest counts from the\n"
            "start of the box. Incus renews its numbers every 8 s. A '-' is what this\n"
            "host's kernel does not tell. For what runs in a box: box exec a -- top -bn1\n",
    .options = options,
    .flags = TAKES_JSON | CANCELLABLE,
    .run = run,
    .also = "stats stat usage monitor htop",
};
