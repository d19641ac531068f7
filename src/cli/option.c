/* Parses the words after a command against arrays of option rows.
 * Not for: what the values mean; a command judges its own. */
#include "cli/option.h"

#include "base/memory.h"
#include "base/text.h"

#include <inttypes.h>
#include <string.h>

struct parser {
    const char *const *words; /* what is left */
    struct option_set *set;
    struct error *err;
};

static const struct option_row *find_name(const struct option_set *set, const char *name, size_t length)
{
    for (const struct option_row *const *table = set->tables; *table; table++) {
        for (const struct option_row *row = *table; row->name; row++) {
            if (strlen(row->name) == length && strncmp(row->name, name, length) == 0) {
                return row;
            }
        }
    }
    return NULL;
}

static const struct option_row *find_letter(const struct option_set *set, char letter)
{
    for (const struct option_row *const *table = set->tables; *table; table++) {
        for (const struct option_row *row = *table; row->name; row++) {
            if (row->letter && row->letter == letter) {
                return row;
            }
        }
    }
    return NULL;
}

/* The known name that is nearest to a mistyped one, or NULL where none is near. */
static const char *nearest(const struct option_set *set, const char *name)
{
    const char *best = NULL;
    unsigned best_distance = (unsigned)strlen(name) / 2 + 1;
    for (const struct option_row *const *table = set->tables; *table; table++) {
        for (const struct option_row *row = *table; row->name; row++) {
            unsigned distance = text_starts_with(row->name, name) ? 1 : text_distance(name, row->name);
            if (distance < best_distance) {
                best = row->name;
                best_distance = distance;
            }
        }
    }
    return best;
}

static int refuse_unknown(struct parser *parser, const char *word, const char *name, size_t length)
{
    CLEANUP(freep) char *copy = xstrndup(name, length);
    bool consents = strcmp(copy, "yes") == 0 || strcmp(copy, "y") == 0;
    const char *near = consents && find_name(parser->set, "force", strlen("force")) ? "force" : nearest(parser->set, copy);
    error_set(parser->err, ERR_USAGE, "unknown flag %.*s", (int)(name + length - word), word);
    if (near) {
        error_remedy(parser->err, "did you mean --%s?", near);
    }
    return -1;
}

static int judge_number(const struct option_row *row, struct option_value *value, struct error *err)
{
    uint64_t maximum = row->maximum || row->minimum ? row->maximum : UINT64_MAX;
    if (text_parse_number(value->text, row->minimum, maximum, &value->number)) {
        return 0;
    }
    if (maximum == UINT64_MAX) {
        return error_set(err, ERR_USAGE, "--%s takes a whole number, not '%s'", row->name, value->text);
    }
    return error_set(err, ERR_USAGE, "--%s takes a whole number from %" PRIu64 " to %" PRIu64 ", not '%s'", row->name,
                     row->minimum, maximum, value->text);
}

/* A value in the next word must not look like a flag: `--memory --cpu 2` is a forgotten value, not a memory. */
static const char *take_value(struct parser *parser)
{
    const char *next = *parser->words;
    if (!next || (next[0] == '-' && next[1])) {
        return NULL;
    }
    parser->words++;
    return next;
}

static int take_option(struct parser *parser, const char *word)
{
    bool is_long = word[1] == '-';
    const char *name = word + (is_long ? 2 : 1);
    const char *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    const struct option_row *row = NULL;
    if (is_long) {
        row = find_name(parser->set, name, length);
    } else if (length == 1) {
        row = find_letter(parser->set, *name);
    }
    if (!row) {
        return refuse_unknown(parser, word, name, length);
    }
    struct option_value value = {.row = row, .text = equals ? equals + 1 : NULL};
    if (row->kind == OPTION_FLAG && equals) {
        return error_set(parser->err, ERR_USAGE, "--%s takes no value", row->name);
    }
    if (row->kind != OPTION_FLAG && !equals) {
        value.text = take_value(parser);
        if (!value.text) {
            error_set(parser->err, ERR_USAGE, "--%s needs a value", row->name);
            return error_remedy(parser->err, "write --%s=%s", row->name, row->value);
        }
    }
    if (row->kind == OPTION_NUMBER && judge_number(row, &value, parser->err) < 0) {
        return -1;
    }
    struct option_set *set = parser->set;
    set->values = xreallocarray(set->values, set->count + 1, sizeof(*set->values));
    set->values[set->count++] = value;
    return 0;
}

int option_parse(const char *const *words, const struct option_row *const *tables, struct option_set *ret_set,
                 struct argv *ret_arguments, struct argv *ret_rest, bool *ret_has_rest, struct error *err)
{
    struct parser parser = {.words = words, .set = ret_set, .err = err};
    *ret_set = (struct option_set){.tables = tables};
    *ret_has_rest = false;
    while (*parser.words) {
        const char *word = *parser.words++;
        if (strcmp(word, "--") == 0) {
            *ret_has_rest = true;
            argv_push_all(ret_rest, parser.words);
            return 0;
        }
        if (word[0] != '-' || !word[1]) {
            argv_push(ret_arguments, word);
        } else if (take_option(&parser, word) < 0) {
            return -1;
        }
    }
    return 0;
}

/* The last value of an option, or NULL where it was not given. */
static const struct option_value *last(const struct option_set *set, const char *name)
{
    if (!set->tables || !find_name(set, name, strlen(name))) {
        abort();
    }
    for (size_t i = set->count; i > 0; i--) {
        if (strcmp(set->values[i - 1].row->name, name) == 0) {
            return &set->values[i - 1];
        }
    }
    return NULL;
}

bool option_given(const struct option_set *set, const char *name)
{
    return last(set, name) != NULL;
}

const char *option_text(const struct option_set *set, const char *name)
{
    const struct option_value *value = last(set, name);
    return value ? value->text : NULL;
}

uint64_t option_number(const struct option_set *set, const char *name, uint64_t fallback)
{
    const struct option_value *value = last(set, name);
    return value ? value->number : fallback;
}

void option_reset(struct option_set *set)
{
    free(set->values);
    *set = (struct option_set){0};
}
