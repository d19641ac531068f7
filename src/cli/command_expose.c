/* `box expose`: doors from this host's loopback into boxes.
 * Not for: how a door is made; see box/door.c. */
#include "base/memory.h"
#include "base/text.h"
#include "box/box.h"
#include "box/door.h"
#include "cli/command.h"
#include "cli/listing.h"

static int parse_port(const char *text, uint16_t *ret_port, struct error *err)
{
    uint64_t number;
    if (!text_parse_number(text, 1, 65535, &number)) {
        return error_set(err, ERR_USAGE, "'%s' is no port: a number from 1 to 65535", text);
    }
    *ret_port = (uint16_t)number;
    return 0;
}

static void print_json(struct context *context, const struct door *doors, size_t count)
{
    CLEANUP(json_freep) json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(list, json_pack("{s:s, s:i, s:s, s:i, s:b}", "box", doors[i].box, "port",
                                              (int)doors[i].port, "host_address", "127.0.0.1", "host_port",
                                              (int)doors[i].host_port, "open", (int)doors[i].open));
    }
    context_print_json(context, list);
}

static int list(struct context *context, struct client *client, const char *box, struct error *err)
{
    struct door *doors;
    size_t count;
    if (door_list(client, box, &doors, &count, err) < 0) {
        return -1;
    }
    if (context->json) {
        print_json(context, doors, count);
    } else if (count) {
        CLEANUP(listing_reset) struct listing table = {0};
        listing_row(&table, "BOX", "PORT", "HERE", "STATE", NULL);
        for (size_t i = 0; i < count; i++) {
            CLEANUP(freep) char *port = xasprintf("%u", doors[i].port);
            CLEANUP(freep) char *here = xasprintf("127.0.0.1:%u", doors[i].host_port);
            listing_row(&table, doors[i].box, port, here, doors[i].open ? "open" : "shut: the box is down", NULL);
        }
        listing_print(&table, context->out);
    } else {
        narrate_note(context->narrator, "there are no doors; to open one: box expose BOX PORT");
    }
    door_list_free(doors, count);
    return 0;
}

static int open_door(struct context *context, struct client *client, const struct box *box, struct error *err)
{
    const char *here = context_argument(context, 2);
    uint16_t port = 0;
    uint16_t host_port = 0;
    if (parse_port(context_argument(context, 1), &port, err) < 0 ||
        parse_port(here ? here : context_argument(context, 1), &host_port, err) < 0 ||
        door_open(client, box, port, host_port, err) < 0) {
        return -1;
    }
    (void)fprintf(context->out, "127.0.0.1:%u\n", host_port);
    narrate_note(context->narrator,
                 "that leads to port %u of %s, whenever a server listens there; to close it: "
                 "box expose %s --remove %u",
                 port, box->name, box->name, port);
    return 0;
}

/* What is asked for, judged before any request. */
static int check_words(struct context *context, struct error *err)
{
    const char *removed = option_text(&context->options, "remove");
    const char *port = context_argument(context, 1);
    bool lists = option_given(&context->options, "list");
    uint16_t number = 0;
    if (lists + (removed != NULL) + (port != NULL) != 1 || (!context_argument(context, 0) && !lists)) {
        error_set(err, ERR_USAGE, "'box expose' takes one of: a box and a port, --list, a box and --remove");
        return error_remedy(err, "usage: box expose BOX PORT [HOSTPORT]\n       box expose [BOX] --list\n"
                                 "       box expose BOX --remove PORT");
    }
    if (context->json && !lists) {
        return error_set(err, ERR_USAGE, "--json goes with --list alone");
    }
    for (size_t i = 1; context_argument(context, i); i++) {
        if (parse_port(context_argument(context, i), &number, err) < 0) {
            return -1;
        }
    }
    return removed ? parse_port(removed, &number, err) : 0;
}

static int run(struct context *context, struct error *err)
{
    struct client *client = NULL;
    CLEANUP(box_freep) struct box *box = NULL;
    const char *name = context_argument(context, 0);
    const char *removed = option_text(&context->options, "remove");
    if (check_words(context, err) < 0 || context_client(context, &client, err) < 0 ||
        (name && box_find(client, name, &box, err) < 0)) {
        return -1;
    }
    if (option_given(&context->options, "list")) {
        return list(context, client, name, err);
    }
    if (removed) {
        uint16_t port = 0;
        return parse_port(removed, &port, err) < 0 ? -1 : door_close(client, box, port, err);
    }
    return open_door(context, client, box, err);
}

static const struct option_row options[] = {
    {.name = "list", .kind = OPTION_FLAG, .letter = 'l', .help = "list the doors there are"},
    {.name = "remove", .kind = OPTION_TEXT, .value = "PORT", .help = "close the door to that port of the box"},
    {0},
};

const struct command command_expose = {
    .name = "expose",
    .section = SECTION_DAILY,
    .arguments = "[BOX] [PORT] [HOSTPORT]",
    .summary = "open a door from this host's loopback to a port of a box",
    .help = "127.0.0.1:HOSTPORT of this host (the same number as PORT unless you say) then\n"
            "leads to PORT of the box. No network and no other box reaches it. The server\n"
            "may listen on the box's own 127.0.0.1, and may come later. One that listens on\n"
            "::1 alone must be there first. A door is shut while its box is down, and gone\n"
            "with it. A VM has none: Incus has no forwarder for it; use 'box ssh-config'.\n"
            "\n"
            "    box expose a 3000\n"
            "    box expose a 3000 8080\n"
            "    box expose --list\n"
            "    box expose a --remove 3000\n",
    .options = options,
    .flags = TAKES_JSON,
    .run = run,
    .also = "port forward publish proxy tunnel open",
};
