/* Judges the loaded walls as semantics: listing against listing, elements against facts.
 * The reference listing is made by the same kernel and library in a network namespace that nobody else sees.
 * Not for repairing: the watcher and setup load the whole transaction again. */
#include "stack/rulecheck.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LISTING_CEILING (1024 * 1024)

static char *list_command(size_t family, enum ruleset_copy copy)
{
    return xasprintf("list table %s %s", ruleset_families[family], ruleset_table(copy));
}

/* In the child: loads and lists; each listing goes out with its NUL. */
static int list_in_namespace(const char *text, enum ruleset_copy copy, int output, struct error *err)
{
    CLEANUP(nft_closep) struct nft *nft = NULL;
    if (unshare(CLONE_NEWNET) < 0) {
        return error_set_errno(err, errno, "cannot make a network namespace");
    }
    if (nft_open(&nft, err) < 0 || nft_apply(nft, text, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < ARRAY_LENGTH(ruleset_families); i++) {
        CLEANUP(freep) char *command = list_command(i, copy);
        CLEANUP(freep) char *listing = NULL;
        if (nft_list(nft, command, &listing, err) < 0 || fd_write_all(output, listing, strlen(listing) + 1, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Runs list_in_namespace() in a child, whose only words are the listings, or its error after an empty listing. */
static int list_apart(const char *text, enum ruleset_copy copy, struct buffer *answer, struct error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) {
        return error_set_errno(err, errno, "cannot make a pipe");
    }
    CLEANUP(fd_closep) int input = ends[0];
    CLEANUP(fd_closep) int output = ends[1];
    pid_t child = fork();
    if (child < 0) {
        return error_set_errno(err, errno, "cannot start a process");
    }
    if (child == 0) {
        struct error failure = {0};
        if (list_in_namespace(text, copy, output, &failure) < 0) {
            (void)fd_write_all(output, "", 1, NULL);
            (void)fd_write_all(output, failure.message, strlen(failure.message) + 1, NULL);
            _exit(1);
        }
        _exit(0);
    }
    fd_closep(&output);
    int got = fd_read_all(input, LISTING_CEILING, answer, err);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
        /* A signal is no answer. */
    }
    if (got < 0) {
        return -1;
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        /* Listings may have come before; the error is the last text. */
        size_t start = answer->length > 1 ? answer->length - 1 : 0;
        while (start > 0 && answer->data[start - 1] != '\0') {
            start--;
        }
        return error_set(err, ERR_SYSTEM, "the rules do not load into an empty network namespace: %s",
                         answer->length > 0 ? answer->data + start : "no word of why");
    }
    return 0;
}

int rulecheck_probe_bridge_meta(bool *ret_known, struct error *err)
{
    struct ruleset ruleset = {.bridge_meta = true};
    CLEANUP(buffer_reset) struct buffer text = {0};
    CLEANUP(buffer_reset) struct buffer answer = {0};
    CLEANUP(buffer_reset) struct buffer second_answer = {0};
    ruleset_write(&ruleset, RULESET_STATIC, &text);
    if (list_apart(text.data, RULESET_STATIC, &answer, NULL) == 0) {
        *ret_known = true;
        return 0;
    }
    ruleset.bridge_meta = false;
    buffer_reset(&text);
    ruleset_write(&ruleset, RULESET_STATIC, &text);
    if (list_apart(text.data, RULESET_STATIC, &second_answer, err) < 0) {
        return -1;
    }
    *ret_known = false;
    return 0;
}

/* nftables names the owning process behind the table's name: a comment, not a rule. */
static char *without_owner(const char *listing)
{
    size_t line = strcspn(listing, "\n");
    const char *comment = memchr(listing, '#', line);
    if (comment == NULL) {
        return xstrdup(listing);
    }
    return xasprintf("%.*s%s", (int)(comment - listing), listing, listing + line);
}

int rulecheck_expect(const struct ruleset *ruleset, enum ruleset_copy copy, struct rulecheck *ret_check,
                     struct error *err)
{
    CLEANUP(buffer_reset) struct buffer text = {0};
    CLEANUP(buffer_reset) struct buffer answer = {0};
    CLEANUP(rulecheck_reset) struct rulecheck check = {0};
    ruleset_write(ruleset, copy, &text);
    if (list_apart(text.data, copy, &answer, err) < 0) {
        return -1;
    }
    size_t start = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(check.listings); i++) {
        if (start >= answer.length) {
            return error_set(err, ERR_SYSTEM, "the listing of the reference rules is cut short");
        }
        check.listings[i] = without_owner(answer.data + start);
        start += strlen(answer.data + start) + 1;
    }
    *ret_check = check;
    check = (struct rulecheck){0};
    return 0;
}

/* The first line in which two listings differ. */
static char *describe(const char *family, enum ruleset_copy copy, const char *want, const char *have)
{
    for (;;) {
        size_t want_length = strcspn(want, "\n");
        size_t have_length = strcspn(have, "\n");
        if (want_length != have_length || memcmp(want, have, want_length) != 0 || want[want_length] == '\0') {
            want += strspn(want, "\t ");
            have += strspn(have, "\t ");
            return xasprintf("table %s %s: \"%.*s\" stands where \"%.*s\" belongs", family, ruleset_table(copy),
                             (int)strcspn(have, "\n"), have, (int)strcspn(want, "\n"), want);
        }
        want += want_length + 1;
        have += have_length + (have[have_length] != '\0');
    }
}

static void drop_quotes(char *text)
{
    char *to = text;
    for (const char *from = text; *from != '\0'; from++) {
        if (*from != '"') {
            *to++ = *from;
        }
    }
    *to = '\0';
}

/* One element as ruleset_set.list writes it, without quotes. Interfaces are listed by name where they still exist. */
static char *element_text(const json_t *element, bool by_index)
{
    CLEANUP(argv_reset) struct argv parts = {0};
    const json_t *concat = json_object_get(element, "concat");
    size_t count = json_is_array(concat) ? json_array_size(concat) : 1;
    for (size_t i = 0; i < count; i++) {
        const json_t *part = json_is_array(concat) ? json_array_get(concat, i) : element;
        const char *text = json_string_value(part);
        unsigned index = text != NULL && by_index && i == 0 ? if_nametoindex(text) : 0;
        if (index != 0) {
            argv_push_format(&parts, "%u", index);
        } else if (json_is_integer(part)) {
            argv_push_format(&parts, "%" JSON_INTEGER_FORMAT, json_integer_value(part));
        } else {
            argv_push(&parts, text != NULL ? text : "?");
        }
    }
    return argv_join(&parts, " . ");
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorted and joined, so that order means nothing. */
static char *sorted(struct argv *list)
{
    if (list->count > 1) {
        qsort(list->items, list->count, sizeof(*list->items), compare_texts);
    }
    return argv_join(list, ", ");
}

static char *live_elements(const json_t *listing, const struct ruleset_set *set)
{
    CLEANUP(argv_reset) struct argv live = {0};
    size_t i, k;
    const json_t *entry, *element;
    bool by_index = text_starts_with(set->type, "iface_index");
    json_array_foreach(listing, i, entry)
    {
        const json_t *object = json_object_get(entry, "set");
        if (!text_equal(json_text(object, "name"), set->name)) {
            continue;
        }
        json_array_foreach(json_object_get(object, "elem"), k, element)
        {
            argv_push_owned(&live, element_text(element, by_index));
        }
    }
    return sorted(&live);
}

/* Compares the elements of the sets of one family. Set by set: in a listing of a whole table libnftables 1.0.6 writes
 * the flags of an owned one from memory that it has freed. */
static int compare_elements(struct nft *nft, const struct ruleset *ruleset, const char *family, enum ruleset_copy copy,
                            char **ret_difference, struct error *err)
{
    for (size_t i = 0; i < RULESET_SET_COUNT; i++) {
        const struct ruleset_set *set = &ruleset_sets[i];
        CLEANUP(argv_reset) struct argv wanted = {0};
        CLEANUP(json_freep) json_t *listing = NULL;
        if (!text_equal(set->family, family)) {
            continue;
        }
        CLEANUP(freep) char *command = xasprintf("list set %s %s %s", family, ruleset_table(copy), set->name);
        if (nft_query(nft, command, &listing, err) < 0) {
            return -1;
        }
        set->list(ruleset, &wanted);
        for (size_t k = 0; k < wanted.count; k++) {
            drop_quotes(wanted.items[k]);
        }
        CLEANUP(freep) char *want = sorted(&wanted);
        CLEANUP(freep) char *have = live_elements(listing, set);
        if (strcmp(want, have) != 0) {
            *ret_difference = xasprintf("set %s %s %s holds {%s} where {%s} belongs", family, ruleset_table(copy),
                                        set->name, have, want);
            return 0;
        }
    }
    *ret_difference = NULL;
    return 0;
}

/* One of the three tables: rules first, for a set can only be read where it exists. */
static int compare_table(struct nft *nft, const struct rulecheck *check, const struct ruleset *ruleset, size_t family,
                         enum ruleset_copy copy, char **ret_difference, struct error *err)
{
    CLEANUP(freep) char *command = list_command(family, copy);
    CLEANUP(freep) char *listing = NULL;
    if (nft_list(nft, command, &listing, err) < 0) {
        return -1;
    }
    CLEANUP(freep) char *bare = without_owner(listing);
    if (strcmp(bare, check->listings[family]) != 0) {
        *ret_difference = describe(ruleset_families[family], copy, check->listings[family], bare);
        return 0;
    }
    return compare_elements(nft, ruleset, ruleset_families[family], copy, ret_difference, err);
}

int rulecheck_compare(struct nft *nft, const struct rulecheck *check, const struct ruleset *ruleset,
                      enum ruleset_copy copy, char **ret_difference, struct error *err)
{
    char *difference = NULL;
    for (size_t i = 0; i < ARRAY_LENGTH(ruleset_families) && difference == NULL; i++) {
        CLEANUP(error_reset) struct error failure = {0};
        if (compare_table(nft, check, ruleset, i, copy, &difference, &failure) < 0) {
            if (failure.code != ERR_NOT_FOUND) {
                return error_move(err, &failure);
            }
            difference = xasprintf("table %s %s is absent", ruleset_families[i], ruleset_table(copy));
        }
    }
    *ret_difference = difference;
    return 0;
}

void rulecheck_reset(struct rulecheck *check)
{
    for (size_t i = 0; i < ARRAY_LENGTH(check->listings); i++) {
        free(check->listings[i]);
    }
    *check = (struct rulecheck){0};
}
