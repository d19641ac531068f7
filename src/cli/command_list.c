/* `box list`: all boxes of this host, one line each, in at most two requests.
 * Not for one box in full: `box info`. */
#include "base/memory.h"
#include "base/text.h"
#include "box/box.h"
#include "cli/command.h"
#include "cli/listing.h"
#include "cli/portrait.h"

static void print_json(struct context *context, struct box *const *boxes, size_t count)
{
    CLEANUP(json_freep) json_t *array = json_array();

    for (size_t i = 0; i < count; i++) {
        (void)json_array_append_new(array, portrait_json(boxes[i]));
    }
    context_print_json(context, array);
}

static const char *or_dash(const char *text)
{
    return text_is_empty(text) ? "-" : text;
}

static void print_table(struct context *context, struct box *const *boxes, size_t count)
{
    CLEANUP(listing_reset) struct listing table = {0};

    listing_row(&table, "NAME", "STATE", "TYPE", "IPV4", "TEMPLATE", "AGE", "NOTE", NULL);
    for (size_t i = 0; i < count; i++) {
        const struct box *box = boxes[i];
        CLEANUP(freep) char *state = portrait_state(box);
        CLEANUP(freep) char *age = portrait_age(box);
        CLEANUP(freep) char *note = portrait_note(box);

        listing_row(&table, box->name, state, box->vm ? "vm" : "container", or_dash(box->ipv4),
                    or_dash(box->template_name), or_dash(age), note, NULL);
    }
    listing_print(&table, context->out);
}

static int run(struct context *context, struct error *err)
{
    struct client *client = NULL;
    struct box **boxes = NULL;
    size_t count = 0;

    if (context_client(context, &client, err) < 0 || box_list(client, &boxes, &count, err) < 0) {
        return -1;
    }
    if (context->json) {
        print_json(context, boxes, count);
    } else if (count > 0) {
        print_table(context, boxes, count);
    } else {
        narrate_note(context->narrator, "no box on this host yet; mint one: box new NAME");
    }
    box_list_free(boxes, count);
    return 0;
}

const struct command command_list = {
    .name = "list",
    .section = SECTION_DAILY,
    .arguments = "",
    .summary = "list the boxes of this host",
    .help = "Only boxes: instances that carry box's tag, the older one included. The last\n"
            "column marks a box whose mint did not end (incomplete) and one whose\n"
            "configuration is off the isolation contract; `box info` says why.\n",
    .flags = TAKES_JSON,
    .run = run,
    .also = "ls ps",
    .instead = "info",
};
