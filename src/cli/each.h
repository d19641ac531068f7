#ifndef BOX_CLI_EACH_H
#define BOX_CLI_EACH_H

#include "box/box.h"
#include "cli/command.h"

/* A command on several boxes at once (many.h): one that fails does not stop the rest. */
struct each {
    struct box **boxes;
    size_t count;
    size_t asked; /* names on the command line, repeated ones not counted */
    size_t failed;
    struct error first; /* of those that failed */
};

/* Finds the boxes that the arguments name, once each. A name that breaks the rule is ERR_USAGE before any request; one
 * that is no box is told and counted as failed. Other errors (no daemon, Ctrl-C) end it. */
int each_find(struct context *context, struct each *each, struct error *err);

/* Acts on each, in a child of its own where there are several; an error is told and counted, but for Ctrl-C, and for
 * one box a daemon that is gone, which end it. */
int each_run(struct context *context, struct each *each,
             int (*act)(struct context *context, struct box *box, struct error *err), struct error *err);

/* 0 where none failed; else the one error where one box was asked for, or how many of how many failed, in the words
 * "2 of 3 boxes could not be removed". */
int each_end(struct each *each, const char *done, struct error *err);

/* The names of those that were found, joined by ", ". The caller frees. */
char *each_names(const struct each *each);

void each_reset(struct each *each);

#endif
