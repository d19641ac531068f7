#ifndef BOX_CLI_MANY_H
#define BOX_CLI_MANY_H

#include "base/argv.h"
#include "cli/command.h"

/* One act on several names at once, each in a process of its own with its own connection: bounded, one failing neither
 * stops nor hides the rest. On a terminal the running ones are a live table, in a log each step is a line that begins
 * with the name. What an act prints to `context->out` is printed whole, in the order of the names; with --json, where
 * each prints one value, as one array. */
struct many {
    const struct argv *names;
    /* In the child: its context has a narrator, an output and no connection yet. */
    int (*act)(struct context *context, void *data, size_t index, struct error *err);
    void *data;
    bool first_alone;   /* the rest begins when the first has ended */
    size_t failed;      /* set by many_run() */
    struct error first; /* likewise: of those that failed */
};

/* 0 where all were tried, whatever became of them; ERR_INTERRUPTED after Ctrl-C, which each running one has then
 * cleaned up behind. */
int many_run(struct context *context, struct many *many, struct error *err);

void many_reset(struct many *many);

/* How many run at once on this machine. */
size_t many_limit(void);

#endif
