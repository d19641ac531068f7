/* Reads the two files by which a machine looks names up: resolv.conf and hosts.
 * Only their text: who opens them and who asks the servers is resolver.c.
 */
#include "resolvconf.h"

#include "literal.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

static const char blanks[] = " \t\r";

/* The next word of a line that ends at a newline or a comment; its length, 0 at the end. Moves *at behind it. */
static size_t next_word(const char **at, const char **ret_word)
{
    *at += strspn(*at, blanks);
    size_t length = strcspn(*at, " \t\r\n#;");
    *ret_word = *at;
    *at += length;
    return length;
}

static const char *next_line(const char *at)
{
    const char *end = strchr(at, '\n');

    return end ? end + 1 : at + strlen(at);
}

static bool is_word(const char *word, size_t length, const char *expected)
{
    return length == strlen(expected) && strncmp(word, expected, length) == 0;
}

static bool copy_word(const char *word, size_t length, char *text, size_t capacity)
{
    if (length == 0 || length >= capacity) {
        return false;
    }
    memcpy(text, word, length);
    text[length] = '\0';
    return true;
}

static void read_option(const char *word, size_t length, struct resolvconf *config)
{
    char text[32];
    uint64_t ndots;

    if (copy_word(word, length, text, sizeof(text)) && strncmp(text, "ndots:", 6) == 0 &&
        literal_number(text + 6, 0, 15, &ndots)) {
        config->ndots = (unsigned)ndots;
    }
}

void resolvconf_read(const char *text, struct resolvconf *ret_config)
{
    *ret_config = (struct resolvconf){.ndots = 1};
    for (; *text; text = next_line(text)) {
        const char *at = text;
        const char *word;
        char copied[RESOLVCONF_NAME];
        size_t length = next_word(&at, &word);
        bool server = is_word(word, length, "nameserver");
        bool search = is_word(word, length, "search") || is_word(word, length, "domain");
        bool options = is_word(word, length, "options");

        if (search) {
            ret_config->search_count = 0; /* the last such line wins */
        }
        while ((server || search || options) && (length = next_word(&at, &word)) > 0) {
            if (server && ret_config->server_count < RESOLVCONF_SERVERS &&
                copy_word(word, length, copied, sizeof(copied)) &&
                endpoint_parse(copied, &ret_config->servers[ret_config->server_count])) {
                ret_config->servers[ret_config->server_count++].port = 53;
            }
            if (search && ret_config->search_count < RESOLVCONF_SEARCH &&
                copy_word(word, length, ret_config->search[ret_config->search_count], RESOLVCONF_NAME)) {
                ret_config->search_count++;
            }
            if (options) {
                read_option(word, length, ret_config);
            }
        }
    }
}

size_t resolvconf_hosts(const char *text, const char *name, struct endpoint *addresses, size_t capacity)
{
    size_t count = 0;

    for (; *text && count < capacity; text = next_line(text)) {
        const char *at = text;
        const char *word;
        char copied[ENDPOINT_TEXT];
        struct endpoint address;
        size_t length = next_word(&at, &word);

        if (!copy_word(word, length, copied, sizeof(copied)) || !endpoint_parse(copied, &address)) {
            continue;
        }
        while ((length = next_word(&at, &word)) > 0) {
            if (length == strlen(name) && strncasecmp(word, name, length) == 0) {
                addresses[count++] = address;
                break;
            }
        }
    }
    return count;
}
