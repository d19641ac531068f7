/* `box new`: makes a box, or many, from a template or from another box.
 * Not for how (box/mint.c, box/clone.c). */
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/clone.h"
#include "box/mint.h"
#include "box/name.h"
#include "box/seed.h"
#include "cli/command.h"
#include "cli/many.h"
#include "cli/portrait.h"
#include "cli/version.h"

#include <string.h>

#define COUNT_MAXIMUM 100

/* All that was decided before the first box is made. */
struct order {
    struct argv names;
    const char *from; /* BOX or BOX/LABEL */
    struct limits flags, limits;
    struct template template;
    struct mint_request mint;
    struct box *source;
    struct snapshot snapshot;
};

static void order_reset(struct order *order)
{
    argv_reset(&order->names);
    limits_reset(&order->limits);
    template_reset(&order->template);
    box_free(order->source);
    snapshot_reset(&order->snapshot);
}

static int choose_name(const struct context *context, const char **ret_name, struct error *err)
{
    const char *option = option_text(&context->options, "name");
    const char *argument = context_argument(context, 0);

    if (option && argument && !text_equal(option, argument)) {
        return error_set(err, ERR_USAGE, "two names were given: %s and %s", argument, option);
    }
    *ret_name = option ? option : argument;
    if (!*ret_name) {
        error_set(err, ERR_USAGE, "a box needs a name");
        return error_remedy(err, "box new NAME");
    }
    return name_check_new(*ret_name, err);
}

/* NAME, or NAME-1 to NAME-N. */
static int choose_names(const struct context *context, struct argv *ret_names, struct error *err)
{
    const char *name = NULL;
    uint64_t count = option_number(&context->options, "count", 0);

    if (choose_name(context, &name, err) < 0) {
        return -1;
    }
    if (count == 0) {
        argv_push(ret_names, name);
    }
    for (uint64_t i = 1; i <= count; i++) {
        argv_push_format(ret_names, "%s-%llu", name, (unsigned long long)i);
    }
    return name_check_new(ret_names->items[ret_names->count - 1], err);
}

static int choose_kind(const struct context *context, enum mint_kind *ret_kind, struct error *err)
{
    bool vm = option_given(&context->options, "vm");
    bool container = option_given(&context->options, "container");

    if (vm && container) {
        return error_set(err, ERR_USAGE, "--vm and --container exclude each other");
    }
    *ret_kind = vm ? MINT_VM : container ? MINT_CONTAINER : MINT_ANY;
    return 0;
}

static int refuse_mixture(const struct context *context, struct error *err)
{
    static const char *const of_a_mint[] = {"template", "template-dir", "vm", "container", "cold"};
    bool from = option_given(&context->options, "from");

    for (size_t i = 0; from && i < ARRAY_LENGTH(of_a_mint); i++) {
        if (option_given(&context->options, of_a_mint[i])) {
            return error_set(err, ERR_USAGE, "--from makes a copy: --%s has no say in that", of_a_mint[i]);
        }
    }
    if (!from && option_given(&context->options, "strip")) {
        return error_set(err, ERR_USAGE, "--strip belongs to --from");
    }
    return 0;
}

static int order_mint(struct context *context, struct order *order, struct error *err)
{
    const char *name = option_text(&context->options, "template");

    if (choose_kind(context, &order->mint.kind, err) < 0 || seed_max_age(&order->mint.seed_age, err) < 0 ||
        template_find(name ? name : TEMPLATE_DEFAULT, option_text(&context->options, "template-dir"), &order->template,
                      err) < 0 ||
        limits_choose(&order->flags, &order->template.limits, &order->limits, err) < 0) {
        return -1;
    }
    order->mint.template = &order->template;
    order->mint.limits = order->limits;
    order->mint.cold = option_given(&context->options, "cold");
    return 0;
}

/* The source is looked up once, however many copies there will be. */
static int order_clone(struct context *context, struct order *order, struct error *err)
{
    CLEANUP(freep) char *name = xstrdup(order->from);
    char *label = strchr(name, '/');
    struct client *client = NULL;

    if (label) {
        *label++ = '\0';
    }
    if (name_check(name, err) < 0 || (label && snapshot_check_label(label, err) < 0) ||
        (order->flags.cpu && limits_check_cpu("--cpu", order->flags.cpu, err) < 0) ||
        (order->flags.memory && limits_check_memory("--memory", order->flags.memory, err) < 0) ||
        (order->flags.disk && limits_check_disk("--disk", order->flags.disk, err) < 0) ||
        context_client(context, &client, err) < 0 || box_find(client, name, &order->source, err) < 0) {
        return -1;
    }
    return label ? snapshot_find(client, name, label, &order->snapshot, err) : 0;
}

static int make(struct context *context, const struct order *order, const char *name, struct box **ret_box,
                struct error *err)
{
    struct client *client = NULL;

    if (context_client(context, &client, err) < 0) {
        return -1;
    }
    if (!order->from) {
        struct mint_request request = order->mint;

        request.name = name;
        return mint_run(client, &request, context->narrator, ret_box, err);
    }
    const struct clone_request request = {
        .name = name,
        .source = order->source,
        .snapshot = order->snapshot.label ? &order->snapshot : NULL,
        .strip = option_given(&context->options, "strip"),
        .limits = order->flags,
        .budget = order->mint.budget,
        .version = BOX_VERSION,
    };

    if (clone_run(client, &request, context->narrator, ret_box, err) < 0) {
        return -1;
    }
    /* Of a pristine box the copy is one, too. */
    if (text_equal(order->snapshot.label, SNAPSHOT_PRISTINE)) {
        (void)snapshot_mark(client, *ret_box, SNAPSHOT_PRISTINE, context->narrator);
    }
    return 0;
}

static void tell_result(struct context *context, const struct box *box, int64_t took)
{
    if (context->json) {
        CLEANUP(json_freep) json_t *object = portrait_json(box);

        context_print_json(context, object);
        return;
    }
    narrate_note(context->narrator, "%s is ready after %.1f s. Enter it: box shell %s", box->name, (double)took / 1000,
                 box->name);
    portrait_tell_login(context->narrator, box);
    (void)fprintf(context->out, "%s %s\n", box->name, box->ipv4 ? box->ipv4 : "-");
}

static int make_and_tell(struct context *context, void *data, size_t index, struct error *err)
{
    const struct order *order = data;
    CLEANUP(box_freep) struct box *box = NULL;
    int64_t began = clock_now();

    if (make(context, order, order->names.items[index], &box, err) < 0) {
        return -1;
    }
    tell_result(context, box, clock_now() - began);
    return 0;
}

/* A seed is kept by the first mint of a template: the rest need not boot an image each. */
static bool first_goes_ahead(struct context *context, const struct order *order)
{
    struct client *client = NULL;
    struct seed *seeds = NULL;
    size_t count = 0;
    bool warm = false;

    if (order->from || order->mint.cold || order->mint.seed_age == 0 || context_client(context, &client, NULL) < 0 ||
        seed_list(client, &seeds, &count, NULL) < 0) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        warm = warm || (seed_is_good(&seeds[i], order->mint.seed_age) && text_equal(seeds[i].version, BOX_VERSION) &&
                        text_equal(seeds[i].digest, order->template.digest));
    }
    seed_list_free(seeds, count);
    return !warm;
}

static int make_many(struct context *context, struct order *order, struct error *err)
{
    CLEANUP(many_reset) struct many many = {.names = &order->names, .act = make_and_tell, .data = order};

    many.first_alone = first_goes_ahead(context, order);
    if (many_run(context, &many, err) < 0) {
        return -1;
    }
    return many.failed == 0
               ? 0
               : error_set(err, many.first.code, "%zu of %zu boxes could not be made", many.failed, order->names.count);
}

static int run(struct context *context, struct error *err)
{
    CLEANUP(order_reset)
    struct order order = {
        .from = option_text(&context->options, "from"),
        .flags = {.cpu = (char *)option_text(&context->options, "cpu"),
                  .memory = (char *)option_text(&context->options, "memory"),
                  .disk = (char *)option_text(&context->options, "disk")},
        .mint = {.budget = (int64_t)option_number(&context->options, "wait", MINT_BUDGET_DEFAULT_S) * 1000,
                 .version = BOX_VERSION},
    };

    if (choose_names(context, &order.names, err) < 0 || refuse_mixture(context, err) < 0 ||
        (order.from ? order_clone(context, &order, err) : order_mint(context, &order, err)) < 0) {
        return -1;
    }
    return option_given(&context->options, "count") ? make_many(context, &order, err)
                                                    : make_and_tell(context, &order, 0, err);
}

static const struct option_row options[] = {
    {.name = "name", .kind = OPTION_TEXT, .value = "NAME", .help = "name of the new box, where it is no argument"},
    {.name = "template", .kind = OPTION_TEXT, .value = "TEMPLATE", .help = "what it is made from (default blank)"},
    {.name = "template-dir", .kind = OPTION_TEXT, .value = "DIR", .help = "look for templates in this directory first"},
    {.name = "from",
     .kind = OPTION_TEXT,
     .value = "BOX[/LABEL]",
     .help = "copy this box, or a snapshot of it, instead"},
    {.name = "strip", .kind = OPTION_FLAG, .help = "with --from: leave out what is off the isolation contract"},
    {.name = "count",
     .kind = OPTION_NUMBER,
     .value = "N",
     .minimum = 1,
     .maximum = COUNT_MAXIMUM,
     .help = "make N at once: NAME-1 to NAME-N"},
    {.name = "cold", .kind = OPTION_FLAG, .help = "boot the image for the first time, even where a seed is there"},
    {.name = "cpu", .kind = OPTION_TEXT, .value = "N", .help = "CPUs that it may use; also BOX_CPU"},
    {.name = "memory", .kind = OPTION_TEXT, .value = "SIZE", .help = "memory, such as 4GiB; also BOX_MEMORY"},
    {.name = "disk", .kind = OPTION_TEXT, .value = "SIZE", .help = "size of its disk, such as 20GiB; also BOX_DISK"},
    {.name = "vm", .kind = OPTION_FLAG, .help = "a VM or nothing"},
    {.name = "container", .kind = OPTION_FLAG, .help = "a container, which shares the host's kernel"},
    {.name = "wait",
     .kind = OPTION_NUMBER,
     .value = "S",
     .minimum = 1,
     .maximum = 86400,
     .help = "seconds that its first boot may take (default 1200)"},
    {0},
};

const struct command command_new = {
    .name = "new",
    .section = SECTION_DAILY,
    .arguments = "[NAME]",
    .summary = "mint a box from a template, or copy one",
    .help = "Creates an instance from the template's image, starts it behind the walls, and\n"
            "waits until it is usable: it has an address, resolves names, and its user can\n"
            "run commands. A VM where this host can run one, else a container, which is\n"
            "weaker isolation, and said so.\n"
            "\n"
            "The first mint of a template keeps a seed: a hidden copy of the box before\n"
            "anybody was in it. The next one is a copy of that, in seconds, until it is 7\n"
            "days old (BOX_SEED_MAX_AGE: 7d, 12h, 0 for never) or the template, the image\n"
            "or box itself changes. --cold does without.\n"
            "\n"
            "--from copies a box with what is in it, credentials included. The copy has its\n"
            "own machine-id, MAC, address, host keys and name before it boots; doors and\n"
            "fixed addresses stay with the source. A source that is off the isolation\n"
            "contract is refused; --strip leaves out what is off it.\n"
            "\n"
            "What fails before the guest has booted, and Ctrl-C at any moment, leaves\n"
            "nothing behind. Where the guest itself fails, the box is kept as incomplete,\n"
            "so that its logs can be read; box rm removes it.\n"
            "\n"
            "The name: 1 to 63 of A-Z a-z 0-9 and -, no hyphen at either end, not digits\n"
            "alone.\n",
    .options = options,
    .flags = CANCELLABLE | TAKES_JSON,
    .run = run,
    .also = "create mint launch add clone copy",
};
