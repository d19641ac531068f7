/* `box new`: mints a box.
 * Not for how (box/mint.c). */
#include "base/clock.h"
#include "base/text.h"
#include "box/mint.h"
#include "box/name.h"
#include "cli/portrait.h"
#include "cli/command.h"
#include "cli/version.h"

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
    return name_check(*ret_name, err);
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

static void tell_result(struct context *context, const struct box *box, int64_t took)
{
    if (context->json) {
        CLEANUP(json_freep) json_t *object = portrait_json(box);

        context_print_json(context, object);
        return;
    }
    narrate_note(context->narrator, "%s is ready after %.1f s. Enter it: box shell %s", box->name,
                 (double)took / 1000, box->name);
    (void)fprintf(context->out, "%s %s\n", box->name, box->ipv4 ? box->ipv4 : "-");
}

static int run(struct context *context, struct error *err)
{
    const char *name = NULL;
    const char *template_name = option_text(&context->options, "template");
    const struct limits flags = {
        .cpu = (char *)option_text(&context->options, "cpu"),
        .memory = (char *)option_text(&context->options, "memory"),
        .disk = (char *)option_text(&context->options, "disk"),
    };
    int64_t began = clock_now();
    CLEANUP(template_reset) struct template template = {0};
    CLEANUP(limits_reset) struct limits limits = {0};
    CLEANUP(box_freep) struct box *box = NULL;
    struct client *client = NULL;
    struct mint_request request = {
        .template = &template,
        .budget = (int64_t)option_number(&context->options, "wait", MINT_BUDGET_DEFAULT_S) * 1000,
        .version = BOX_VERSION,
    };

    if (choose_name(context, &name, err) < 0 || choose_kind(context, &request.kind, err) < 0 ||
        template_find(template_name ? template_name : TEMPLATE_DEFAULT,
                      option_text(&context->options, "template-dir"), &template, err) < 0 ||
        limits_choose(&flags, &template.limits, &limits, err) < 0 || context_client(context, &client, err) < 0) {
        return -1;
    }
    request.name = name;
    request.limits = limits;
    if (mint_run(client, &request, context->narrator, &box, err) < 0) {
        return -1;
    }
    tell_result(context, box, clock_now() - began);
    return 0;
}

static const struct option_row options[] = {
    {.name = "name", .kind = OPTION_TEXT, .value = "NAME", .help = "name of the new box, where it is no argument"},
    {.name = "template", .kind = OPTION_TEXT, .value = "TEMPLATE", .help = "what it is made from (default blank)"},
    {.name = "template-dir", .kind = OPTION_TEXT, .value = "DIR", .help = "look for templates in this directory first"},
    {.name = "cpu", .kind = OPTION_TEXT, .value = "N", .help = "CPUs that it may use; also BOX_CPU"},
    {.name = "memory", .kind = OPTION_TEXT, .value = "SIZE", .help = "memory, such as 4GiB; also BOX_MEMORY"},
    {.name = "disk", .kind = OPTION_TEXT, .value = "SIZE", .help = "size of its disk, such as 20GiB; also BOX_DISK"},
    {.name = "vm", .kind = OPTION_FLAG, .help = "a VM or nothing"},
    {.name = "container", .kind = OPTION_FLAG, .help = "a container, which shares the host's kernel"},
    {.name = "wait", .kind = OPTION_NUMBER, .value = "S", .minimum = 1, .maximum = 86400,
     .help = "seconds that its first boot may take (default 1200)"},
    {0},
};

const struct command command_new = {
    .name = "new",
    .section = SECTION_DAILY,
    .arguments = "[NAME]",
    .summary = "mint a box from a template",
    .help = "Creates an instance from the template's image, starts it behind the walls, and\n"
            "waits until it is usable: it has an address, resolves names, and its user can\n"
            "run commands. A VM where this host can run one, else a container, which is\n"
            "weaker isolation, and said so.\n"
            "\n"
            "What fails before the guest has booted, and Ctrl-C at any moment, leaves\n"
            "nothing behind. Where the guest itself fails, the box is kept as incomplete, so\n"
            "that its logs can be read; box rm removes it.\n"
            "\n"
            "The name: 1 to 63 of A-Z a-z 0-9 and -, no hyphen at either end, not digits\n"
            "alone.\n",
    .options = options,
    .flags = CANCELLABLE | TAKES_JSON,
    .run = run,
    .also = "create mint launch add",
};
