/* What a command runs with: the daemon's connection on first use, arguments, results as JSON.
 * Not for: building a context, which main.c does. */
#include "base/memory.h"
#include "cli/command.h"
#include "cli/console.h"
#include "incus/client.h"

int context_client(struct context *context, struct client **ret_client, struct error *err)
{
    if (!context->client) {
        if (client_open(&context->client, err) < 0) {
            return -1;
        }
        client_narrate(context->client, context->narrator);
        if (context->verbose) {
            client_trace(context->client, console_trace, context->narrator);
        }
    }
    *ret_client = context->client;
    return 0;
}

const char *context_argument(const struct context *context, size_t index)
{
    return index < context->arguments.count ? context->arguments.items[index] : NULL;
}

void context_print_json(struct context *context, const json_t *value)
{
    CLEANUP(freep) char *text = json_write(value, JSON_INDENT(2));
    (void)fprintf(context->out, "%s\n", text);
}
