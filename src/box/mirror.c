/* Finding the machine's own Debian archive in its apt sources, in both formats that apt reads.
 * Not for changing them, nor for any archive but Debian's. */
#include "box/mirror.h"

#include "base/argv.h"
#include "base/buffer.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define MIRROR_CEILING (1024 * 1024)
#define KEYRING_NAME   "debian-archive-keyring"

/* Names under which Debian publishes; a third party's archive may use one too, hence the ranking below. */
static const char *const suites[] = {"bullseye", "bookworm", "trixie",    "forky",  "duke",    "sid",
                                     "stable",   "testing",  "oldstable", "unstable", NULL};

/* The best archive seen so far, of either sort. */
struct finding {
    int rank;
    char *uri, *keyring;
};

struct search {
    struct finding archive, security;
};

static void search_reset(struct search *search)
{
    free(search->archive.uri);
    free(search->archive.keyring);
    free(search->security.uri);
    free(search->security.keyring);
}

static void split(const char *text, struct argv *ret_words)
{
    const char *blanks = " \t\r\n";

    text += strspn(text, blanks);
    while (*text) {
        size_t length = strcspn(text, blanks);

        argv_push_owned(ret_words, xstrndup(text, length));
        text += length;
        text += strspn(text, blanks);
    }
}

static bool is_suite(const char *suite, const char *suffix)
{
    for (size_t i = 0; suites[i]; i++) {
        size_t length = strlen(suites[i]);

        if (strncmp(suite, suites[i], length) == 0 && text_equal(suite + length, suffix)) {
            return true;
        }
    }
    return false;
}

/* "mirror+file:/etc/apt/mirrors/debian.list", as Debian's cloud images have it, names a file of URIs. */
static char *resolve_uri(const char *uri)
{
    CLEANUP(buffer_reset) struct buffer text = {0};
    CLEANUP(argv_reset) struct argv words = {0};

    if (text_starts_with(uri, "http://") || text_starts_with(uri, "https://")) {
        return xstrdup(uri);
    }
    if (!text_starts_with(uri, "mirror+file:")) {
        return NULL;
    }
    const char *path = uri + strlen("mirror+file:");

    path += strspn(path, "/") > 0 ? strspn(path, "/") - 1 : 0;
    if (fd_read_file(path, MIRROR_CEILING, &text, NULL) < 0) {
        return NULL;
    }
    split(text.data ? text.data : "", &words);
    for (size_t i = 0; i < words.count; i++) {
        if (text_starts_with(words.items[i], "http://") || text_starts_with(words.items[i], "https://")) {
            return xstrdup(words.items[i]);
        }
    }
    return NULL;
}

/* Signed by Debian's own keyring is certain; by none named, likely; by another's, a last resort. */
static int rank_of(const char *signed_by)
{
    if (!signed_by || signed_by[0] != '/') {
        return 2;
    }
    return strstr(signed_by, "debian-archive") ? 3 : 1;
}

static void consider(struct search *search, const char *uri, const char *suite, const char *signed_by)
{
    struct finding *finding = is_suite(suite, "")                                          ? &search->archive
                              : is_suite(suite, "-security") || is_suite(suite, "/updates") ? &search->security
                                                                                           : NULL;
    int rank = rank_of(signed_by);

    if (!finding || rank <= finding->rank) {
        return;
    }
    char *resolved = resolve_uri(uri);

    if (!resolved) {
        return;
    }
    free(finding->uri);
    free(finding->keyring);
    finding->uri = resolved;
    finding->keyring = signed_by && signed_by[0] == '/' ? xstrdup(signed_by) : NULL;
    finding->rank = rank;
    for (size_t length = strlen(resolved); length > 0 && resolved[length - 1] == '/'; length--) {
        resolved[length - 1] = '\0';
    }
}

/* deb [arch=amd64 signed-by=/k.gpg] http://host/debian bookworm main */
static void read_line(struct search *search, const char *line)
{
    CLEANUP(freep) char *options = NULL;
    CLEANUP(freep) char *signed_by = NULL;
    CLEANUP(argv_reset) struct argv words = {0};

    line += strspn(line, " \t");
    if (strncmp(line, "deb", 3) != 0 || !strchr(" \t", line[3]) || line[3] == '\0') {
        return;
    }
    line += 3 + strspn(line + 3, " \t");
    if (*line == '[') {
        size_t length = strcspn(line, "]");

        options = xstrndup(line + 1, length - 1);
        line += length + (line[length] == ']');
    }
    if (options) {
        CLEANUP(argv_reset) struct argv pairs = {0};

        split(options, &pairs);
        for (size_t i = 0; i < pairs.count; i++) {
            if (text_starts_with(pairs.items[i], "signed-by=")) {
                free(signed_by);
                signed_by = xstrdup(pairs.items[i] + strlen("signed-by="));
            }
        }
    }
    split(line, &words);
    if (words.count >= 3 && argv_contains(&words, "main")) {
        consider(search, words.items[0], words.items[1], signed_by);
    }
}

static void read_list(struct search *search, char *text)
{
    for (char *line = text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next) {
            *next++ = '\0';
        }
        line[strcspn(line, "#")] = '\0';
        read_line(search, line);
    }
}

struct stanza {
    struct argv types, uris, suites, components, signed_by;
    bool disabled;
};

static void stanza_reset(struct stanza *stanza)
{
    argv_reset(&stanza->types);
    argv_reset(&stanza->uris);
    argv_reset(&stanza->suites);
    argv_reset(&stanza->components);
    argv_reset(&stanza->signed_by);
    stanza->disabled = false;
}

static void stanza_end(struct search *search, struct stanza *stanza)
{
    if (!stanza->disabled && argv_contains(&stanza->types, "deb") && argv_contains(&stanza->components, "main")) {
        for (size_t u = 0; u < stanza->uris.count; u++) {
            for (size_t s = 0; s < stanza->suites.count; s++) {
                consider(search, stanza->uris.items[u], stanza->suites.items[s],
                         stanza->signed_by.count > 0 ? stanza->signed_by.items[0] : NULL);
            }
        }
    }
    stanza_reset(stanza);
}

static struct argv *field_of(struct stanza *stanza, const char *line, size_t length)
{
    const struct {
        const char *name;
        struct argv *list;
    } fields[] = {
        {"Types", &stanza->types},           {"URIs", &stanza->uris},           {"Suites", &stanza->suites},
        {"Components", &stanza->components}, {"Signed-By", &stanza->signed_by},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(fields); i++) {
        if (strlen(fields[i].name) == length && strncasecmp(fields[i].name, line, length) == 0) {
            return fields[i].list;
        }
    }
    return NULL;
}

static void read_stanzas(struct search *search, char *text)
{
    CLEANUP(stanza_reset) struct stanza stanza = {0};
    struct argv *field = NULL;

    for (char *line = text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next) {
            *next++ = '\0';
        }
        if (*line == '#') {
            continue; /* comments may stand between the lines of a field */
        }
        if (line[strspn(line, " \t\r")] == '\0') {
            stanza_end(search, &stanza);
            field = NULL;
        } else if (*line == ' ' || *line == '\t') {
            if (field) {
                split(line, field);
            }
        } else {
            size_t length = strcspn(line, ":");
            const char *value = line + length + (line[length] == ':');

            field = field_of(&stanza, line, length);
            if (field) {
                split(value, field);
            } else if (length == strlen("Enabled") && strncasecmp(line, "Enabled", length) == 0) {
                stanza.disabled = strcasestr(value, "no") || strcasestr(value, "false");
            }
        }
    }
    stanza_end(search, &stanza);
}

static void read_matching(struct search *search, const char *directory, const char *pattern,
                          void (*read)(struct search *, char *))
{
    CLEANUP(freep) char *path = xasprintf("%s/%s", directory, pattern);
    glob_t found = {0};

    if (glob(path, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            CLEANUP(buffer_reset) struct buffer text = {0};

            if (fd_read_file(found.gl_pathv[i], MIRROR_CEILING, &text, NULL) == 0 && text.data) {
                read(search, text.data);
            }
        }
    }
    globfree(&found);
}

static char *default_keyring(void)
{
    static const char *const paths[] = {"/usr/share/keyrings/" KEYRING_NAME ".gpg",
                                        "/usr/share/keyrings/" KEYRING_NAME ".pgp"};

    for (size_t i = 0; i < ARRAY_LENGTH(paths); i++) {
        if (access(paths[i], R_OK) == 0) {
            return xstrdup(paths[i]);
        }
    }
    return NULL;
}

/* 1 where $BOX_MIRROR is set and good, 0 where it is not set, -1 with an error. */
static int from_environment(struct mirror *ret_mirror, struct error *err)
{
    const char *value = getenv("BOX_MIRROR");
    CLEANUP(argv_reset) struct argv words = {0};

    if (text_is_empty(value)) {
        return 0;
    }
    split(value, &words);
    for (size_t i = 0; i < words.count; i++) {
        if (!text_starts_with(words.items[i], "http://") && !text_starts_with(words.items[i], "https://")) {
            return error_set(err, ERR_USAGE, "BOX_MIRROR: '%s' is not an http or https URI", words.items[i]);
        }
    }
    if (words.count < 1 || words.count > 2) {
        return error_set(err, ERR_USAGE, "BOX_MIRROR: expected the URI of a Debian archive, and maybe one of its "
                                         "security archive after a blank");
    }
    ret_mirror->archive = xstrdup(words.items[0]);
    ret_mirror->security = words.count == 2 ? xstrdup(words.items[1]) : NULL;
    return 1;
}

int mirror_find(const char *directory, struct mirror *ret_mirror, struct error *err)
{
    CLEANUP(search_reset) struct search search = {0};
    CLEANUP(mirror_reset) struct mirror mirror = {0};

    read_matching(&search, directory, "sources.list", read_list);
    read_matching(&search, directory, "sources.list.d/*.list", read_list);
    read_matching(&search, directory, "sources.list.d/*.sources", read_stanzas);
    if (search.archive.uri) {
        mirror.archive = steal(&search.archive.uri);
        mirror.security = steal(&search.security.uri);
        mirror.keyring = steal(&search.archive.keyring);
    } else {
        int given = from_environment(&mirror, err);

        if (given < 0) {
            return -1;
        }
        if (given == 0) {
            error_set(err, ERR_NOT_FOUND, "this machine's apt sources name no Debian archive to build from");
            return error_remedy(err, "set BOX_MIRROR to the URI of a Debian mirror");
        }
    }
    if (!mirror.keyring) {
        mirror.keyring = default_keyring();
    }
    if (!mirror.keyring) {
        error_set(err, ERR_NOT_FOUND, "this machine has no key to verify Debian's archive with");
        return error_remedy(err, "apt-get install " KEYRING_NAME);
    }
    *ret_mirror = mirror;
    mirror = (struct mirror){0};
    return 0;
}

int mirror_for_boxes(const struct mirror *machine, struct mirror *ret_mirror, struct error *err)
{
    int given = from_environment(ret_mirror, err);

    if (given == 0) {
        ret_mirror->archive = xstrdup(machine->archive);
        ret_mirror->security = machine->security ? xstrdup(machine->security) : NULL;
    }
    return given < 0 ? -1 : 0;
}

void mirror_reset(struct mirror *mirror)
{
    free(mirror->archive);
    free(mirror->security);
    free(mirror->keyring);
    *mirror = (struct mirror){0};
}
