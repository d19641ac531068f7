/* The command table and what can be read off its rows.
 * Not for: running a command (main.c), describing it (help.c, manual.c, completion.c). */
#include "cli/commands.h"

#include "base/memory.h"
#include "base/text.h"

#include <string.h>


#define COMMAND(name) extern const struct command command_##name;
#include "cli/commands.def"
#undef COMMAND

static const struct command *const rows[] = {
#define COMMAND(name) &command_##name,
#include "cli/commands.def"
#undef COMMAND
    NULL,
};

static const struct option_row json_option[] = {
    {.name = "json", .kind = OPTION_FLAG, .help = "print JSON, in a shape that stays"},
    {0},
};

static const struct option_row force_option[] = {
    {.name = "force", .kind = OPTION_FLAG, .letter = 'f', .help = "do not ask"},
    {0},
};

static const struct option_row common_options[] = {
    {.name = "help", .kind = OPTION_FLAG, .letter = 'h', .help = "show this help"},
    {.name = "quiet", .kind = OPTION_FLAG, .letter = 'q', .help = "show only warnings and errors"},
    {.name = "verbose", .kind = OPTION_FLAG, .letter = 'v', .help = "tell each request to the daemon with its time"},
    {0},
};

const struct command *const *commands_all(void)
{
    return rows;
}

/* Number of words of `name` where `words` begins with them, else 0. */
static size_t match(const char *name, const char *const *words)
{
    size_t used = 0;
    for (;;) {
        size_t length = strcspn(name, " ");
        if (!words[used] || strlen(words[used]) != length || strncmp(words[used], name, length) != 0) {
            return 0;
        }
        used++;
        if (!name[length]) {
            return used;
        }
        name += length + 1;
    }
}

static bool is_member(const struct command *command, const char *group)
{
    size_t length = strlen(group);
    return strncmp(command->name, group, length) == 0 && command->name[length] == ' ';
}

bool commands_is_group(const char *word)
{
    bool found = false;
    for (size_t i = 0; rows[i]; i++) {
        if (text_equal(rows[i]->name, word)) {
            return false;
        }
        found = found || is_member(rows[i], word);
    }
    return found;
}

/* The command that a mistyped one most likely means, or NULL. */
static const struct command *nearest(const char *typed)
{
    const struct command *best = NULL;
    unsigned best_distance = (unsigned)strlen(typed) / 2 + 1;
    for (size_t i = 0; rows[i]; i++) {
        if (rows[i]->flags & HIDDEN) {
            continue;
        }
        unsigned distance = text_starts_with(rows[i]->name, typed) ? 1 : text_distance(typed, rows[i]->name);
        if (rows[i]->also) {
            CLEANUP(freep) char *padded = xasprintf(" %s ", rows[i]->also);
            CLEANUP(freep) char *wanted = xasprintf(" %s ", typed);
            distance = strstr(padded, wanted) ? 0 : distance;
        }
        if (distance < best_distance) {
            best = rows[i];
            best_distance = distance;
        }
    }
    return best;
}

static int refuse(const char *const *words, struct error *err)
{
    CLEANUP(argv_reset) struct argv members = {0};
    for (size_t i = 0; rows[i]; i++) {
        if (is_member(rows[i], words[0])) {
            argv_push(&members, rows[i]->name + strlen(words[0]) + 1);
        }
    }
    CLEANUP(freep) char *typed =
        members.count && words[1] ? xasprintf("%s %s", words[0], words[1]) : xstrdup(words[0]);
    if (members.count && (!words[1] || words[1][0] == '-')) {
        error_set(err, ERR_USAGE, "'box %s' needs to know what to do", words[0]);
    } else {
        error_set(err, ERR_USAGE, "there is no command 'box %s'", typed);
    }
    const struct command *near = members.count ? NULL : nearest(typed);
    if (members.count) {
        CLEANUP(freep) char *list = argv_join(&members, ", ");
        return error_remedy(err, "one of: %s; see: box help %s", list, words[0]);
    }
    return near ? error_remedy(err, "did you mean: box %s", near->name) : error_remedy(err, "all commands: box help");
}

int commands_find(const char *const *words, const struct command **ret_command, size_t *ret_used, struct error *err)
{
    size_t best = 0;
    for (size_t i = 0; rows[i]; i++) {
        size_t used = match(rows[i]->name, words);
        if (used > best) {
            *ret_command = rows[i];
            *ret_used = best = used;
        }
    }
    return best ? 0 : refuse(words, err);
}

void commands_options(const struct command *command, const struct option_row *ret_tables[COMMANDS_TABLES])
{
    size_t count = 0;
    if (command->options) {
        ret_tables[count++] = command->options;
    }
    if (command->flags & TAKES_JSON) {
        ret_tables[count++] = json_option;
    }
    if (command->flags & DESTRUCTIVE) {
        ret_tables[count++] = force_option;
    }
    ret_tables[count++] = common_options;
    ret_tables[count] = NULL;
}

const struct option_row *commands_common(void)
{
    return common_options;
}

void commands_arity(const struct command *command, size_t *ret_least, size_t *ret_most)
{
    size_t least = 0;
    size_t most = 0;
    const char *word = command->arguments ? command->arguments : "";
    while (*word) {
        size_t length = strcspn(word, " ");
        if (length == 2 && strncmp(word, "--", 2) == 0) {
            break;
        }
        least += *word != '[';
        CLEANUP(freep) char *copy = xstrndup(word, length);
        most = strstr(copy, "...") || most == SIZE_MAX ? SIZE_MAX : most + 1;
        word += length;
        word += strspn(word, " ");
    }
    *ret_least = least;
    *ret_most = most;
}

char *commands_argument(const struct command *command, size_t index)
{
    const char *word = command->arguments ? command->arguments : "";
    for (; index > 0; index--) {
        word += strcspn(word, " ");
        word += strspn(word, " ");
    }
    word += *word == '[';
    return xstrndup(word, strcspn(word, "[]. "));
}

char *commands_usage(const struct command *command)
{
    bool has_arguments = !text_is_empty(command->arguments);
    return xasprintf("box %s%s%s", command->name, has_arguments ? " " : "", has_arguments ? command->arguments : "");
}
