/* `box templates`: what boxes can be minted from.
 * Not for images: `box image list`. */
#include "base/buffer.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/seed.h"
#include "box/template.h"
#include "cli/command.h"
#include "cli/listing.h"
#include "cli/version.h"

#include <string.h>

/* The bytes of a path are anybody's, and JSON's are UTF-8. The caller frees. */
static char *clean(const char *text)
{
    return text ? text_sanitise(text, strlen(text)) : NULL;
}

/* The seeds, where there is a daemon to ask: templates can be read without one. */
struct warmth {
    struct seed *seeds;
    size_t count;
    int64_t max_age;
};

static void look_for_seeds(struct context *context, struct warmth *warmth)
{
    struct client *client = NULL;

    if (seed_max_age(&warmth->max_age, NULL) == 0 && context_client(context, &client, NULL) == 0) {
        (void)seed_list(client, &warmth->seeds, &warmth->count, NULL);
    }
}

static bool is_warm(const struct warmth *warmth, const struct template *template)
{
    for (size_t i = 0; i < warmth->count; i++) {
        const struct seed *seed = &warmth->seeds[i];

        if (text_equal(seed->template_name, template->name) && text_equal(seed->digest, template->digest) &&
            text_equal(seed->version, BOX_VERSION) && seed_is_good(seed, warmth->max_age)) {
            return true;
        }
    }
    return false;
}

static json_t *describe(const struct template_row *row, const struct warmth *warmth)
{
    const struct template *template = &row->template;
    CLEANUP(freep) char *directory = clean(row->directory);
    CLEANUP(freep) char *fault = clean(row->fault);
    const char *description = text_is_empty(template->description) ? NULL : template->description;

    return json_pack("{s:s, s:s, s:b, s:s?, s:s?, s:s?, s:s?, s:s?, s:s?, s:s?, s:b, s:b, s:s?, s:b, s:s?, s:b}", "name",
                     row->name, "directory", directory, "hidden", row->hidden, "fault", fault, "description",
                     description, "image", template->image, "user", template->user, "cpu", template->limits.cpu,
                     "memory", template->limits.memory, "disk", template->limits.disk, "require_vm",
                     template->require_vm, "autostart", template->autostart, "digest",
                     row->fault ? NULL : template->digest, "warm", (int)(!row->fault && is_warm(warmth, template)),
                     "login", text_is_empty(template->login) ? NULL : template->login, "converge",
                     template->script != NULL);
}

static void print_json(struct context *context, const struct template_row *rows, size_t count,
                       const struct warmth *warmth)
{
    CLEANUP(json_freep) json_t *array = json_array();

    for (size_t i = 0; i < count; i++) {
        (void)json_array_append_new(array, describe(&rows[i], warmth));
    }
    context_print_json(context, array);
}

/* "2 CPU, 2GiB, 10GiB disk, a VM" */
static char *needs(const struct template *template)
{
    const struct limits *limits = &template->limits;
    CLEANUP(buffer_reset) struct buffer text = {0};

    if (limits->cpu) {
        buffer_append_format(&text, "%s CPU", limits->cpu);
    }
    if (limits->memory) {
        buffer_append_format(&text, "%s%s", text.length > 0 ? ", " : "", limits->memory);
    }
    if (limits->disk) {
        buffer_append_format(&text, "%s%s disk", text.length > 0 ? ", " : "", limits->disk);
    }
    if (template->require_vm) {
        buffer_append_format(&text, "%sa VM", text.length > 0 ? ", " : "");
    }
    return buffer_steal(&text);
}

static void print_table(struct context *context, const struct template_row *rows, size_t count,
                        const struct warmth *warmth)
{
    CLEANUP(listing_reset) struct listing table = {0};

    listing_row(&table, "TEMPLATE", "IMAGE", "USER", "NEEDS", "MINT", "DESCRIPTION", "DIRECTORY", NULL);
    for (size_t i = 0; i < count; i++) {
        const struct template *template = &rows[i].template;
        CLEANUP(freep) char *wanted = needs(template);

        if (rows[i].hidden) {
            narrate_note(context->narrator, "%s is not used: another template of its name comes first",
                         rows[i].directory);
        } else if (rows[i].fault) {
            listing_row(&table, rows[i].name, "-", "-", "-", "-", "cannot be used", rows[i].directory, NULL);
        } else {
            listing_row(&table, rows[i].name, template->image, template->user, wanted,
                        is_warm(warmth, template) ? "warm" : "cold",
                        text_is_empty(template->description) ? "-" : template->description, rows[i].directory, NULL);
        }
    }
    listing_print(&table, context->out);
}

static int run(struct context *context, struct error *err)
{
    const char *directory = option_text(&context->options, "template-dir");
    struct template_row *rows = NULL;
    size_t count = 0;
    struct warmth warmth = {0};

    if (directory && template_check_directory(directory, err) < 0) {
        return -1;
    }
    template_list(directory, &rows, &count);
    if (count > 0) {
        look_for_seeds(context, &warmth);
    }
    if (context->json) {
        print_json(context, rows, count, &warmth);
    } else if (count > 0) {
        print_table(context, rows, count, &warmth);
    } else {
        narrate_note(context->narrator,
                     "no template anywhere; box looks in --template-dir and ~/.config/box/templates");
    }
    (void)fflush(context->out); /* or a warning lands within a row, where both go into one pipe */
    for (size_t i = 0; i < count; i++) {
        if (rows[i].fault) {
            narrate_warn(context->narrator, "%s", rows[i].fault);
        }
    }
    template_list_free(rows, count);
    seed_list_free(warmth.seeds, warmth.count);
    return 0;
}

static const struct option_row options[] = {
    {.name = "template-dir", .kind = OPTION_TEXT, .value = "DIR", .help = "look for templates in DIR first"},
    {0},
};

const struct command command_templates = {
    .name = "templates",
    .section = SECTION_IMAGES,
    .arguments = "",
    .summary = "list what boxes can be minted from",
    .help = "A template is a directory NAME of two files: box.env and user-data.yaml, which\n"
            "cloud-init gets byte for byte. A third, converge.sh, may be there. It is run\n"
            "in the guest as root after cloud-init, and `box converge BOX` runs it again.\n"
            "Templates of your own go into ~/.config/box/templates (or\n"
            "$XDG_CONFIG_HOME/box/templates) and come before those of box.\n"
            "\n"
            "MINT says warm where a seed is kept, from which a box comes in seconds.\n"
            "\n"
            "box.env holds KEY=\"value\" lines and comments (#); nothing in it is expanded:\n"
            "\n"
            "    BOX_DESCRIPTION  one line\n"
            "    BOX_IMAGE        the image, such as debian/13\n"
            "    BOX_USER         whom exec and shell land in; user-data.yaml makes it\n"
            "    BOX_CPU          number of CPUs\n"
            "    BOX_MEMORY       such as 2GiB\n"
            "    BOX_DISK         such as 10GiB\n"
            "    BOX_REQUIRE_VM   true: never mint it as a container\n"
            "    BOX_LOGIN        what to type in a box to log in, told when it is ready\n"
            "    BOX_AUTOSTART    true: boxes of it start with the host\n"
            "\n"
            "No key carries a secret, and none makes the walls thinner.\n",
    .options = options,
    .flags = TAKES_JSON,
    .run = run,
};
