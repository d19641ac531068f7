/* Other firewalls on this host: Docker, UFW and their like drop what they do not know, and boxes then have no network
 * for a reason that nobody sees. Where a chain of theirs drops by default, boxnet is let through it; the walls stay
 * what they are, for an accept there ends nothing here. Each of our rules carries the comment "box". Not for a firewall
 * that rejects by a rule of its own: what a box then lacks is told by doctor's look into it. */
#include "base/buffer.h"
#include "base/memory.h"
#include "base/text.h"
#include "host/nft.h"
#include "stack/names.h"
#include "stack/table.h"

#include <string.h>

#define NAME    "other firewalls"
#define COMMENT "comment \"box\""

/* What a hook must let through for boxes. In words that iptables can read back: with a rule that it cannot (ct state
 * among them), it calls the chain incompatible, and whoever uses it on that chain fails. Towards boxes all is let
 * through, for the walls drop what is no answer. */
static const struct {
    const char *hook, *match;
} passes[] = {
    {"forward", "iifname \"" STACK_NETWORK "\" accept"},
    {"forward", "oifname \"" STACK_NETWORK "\" accept"},
    {"input", "iifname \"" STACK_NETWORK "\" udp dport 53 accept"},
    {"input", "iifname \"" STACK_NETWORK "\" tcp dport 53 accept"},
    {"input", "iifname \"" STACK_NETWORK "\" udp dport 67 accept"},
};

/* A base chain of somebody else's that drops by default. */
struct chain {
    char family[16], table[64], name[64], hook[16];
};

static bool copy_word(char *target, size_t size, const char *word)
{
    size_t length = word != NULL ? strcspn(word, " {;") : size;
    if (length == 0 || length >= size) {
        return false;
    }
    memcpy(target, word, length);
    target[length] = '\0';
    return true;
}

static bool is_known(const char *table)
{
    return text_equal(table, STACK_NFT_TABLE) || text_equal(table, STACK_NFT_TABLE "-owned") ||
           text_equal(table, OLDER_NFT_TABLE) || text_equal(table, "incus");
}

/* From the text of "list chains": tables, chains in them, and a line "type filter hook forward priority ...; policy
 * drop;".
 */
static struct chain *parse(char *listing, size_t *ret_count)
{
    struct chain *chains = NULL, now = {0};
    *ret_count = 0;
    for (char *rest = listing, *line; (line = strsep(&rest, "\n")) != NULL;) {
        line += strspn(line, " \t");
        if (text_starts_with(line, "table ")) {
            char *word = line + strlen("table ");
            bool whole = copy_word(now.family, sizeof(now.family), strsep(&word, " ")) &&
                         copy_word(now.table, sizeof(now.table), word);
            now.table[0] = whole ? now.table[0] : '\0';
        } else if (text_starts_with(line, "chain ")) {
            now.name[0] = copy_word(now.name, sizeof(now.name), line + strlen("chain ")) ? now.name[0] : '\0';
        } else if (text_starts_with(line, "type filter hook ") && strstr(line, "policy drop;") != NULL &&
                   copy_word(now.hook, sizeof(now.hook), line + strlen("type filter hook ")) && now.table[0] != '\0' &&
                   now.name[0] != '\0' && !is_known(now.table) &&
                   (text_equal(now.family, "ip") || text_equal(now.family, "inet")) &&
                   (text_equal(now.hook, "forward") || text_equal(now.hook, "input"))) {
            chains = xreallocarray(chains, *ret_count + 1, sizeof(*chains));
            chains[(*ret_count)++] = now;
        }
    }
    return chains;
}

static int list_chains(struct nft *nft, struct chain **ret_chains, size_t *ret_count, struct error *err)
{
    CLEANUP(freep) char *listing = NULL;
    if (nft_list(nft, "list chains", &listing, err) < 0) {
        return -1;
    }
    *ret_chains = parse(listing, ret_count);
    return 0;
}

/* A rule's line without what does not change its meaning: counter, comment and the blanks that iptables leaves where it
 * has put a rule back. The caller frees. */
static char *essence(char *line)
{
    CLEANUP(argv_reset) struct argv words = {0};
    for (char *word; (word = strsep(&line, " \t")) != NULL;) {
        if (text_equal(word, "comment")) {
            break; /* it is the last */
        }
        if (text_equal(word, "packets") || text_equal(word, "bytes")) {
            (void)strsep(&line, " \t");
        } else if (word[0] != '\0' && !text_equal(word, "counter")) {
            argv_push(&words, word);
        }
    }
    return argv_join(&words, " ");
}

/* True where the table's text lets the match through, by a rule of ours or of somebody else's. */
static bool lets_through(const char *listing, const char *match)
{
    CLEANUP(freep) char *copy = xstrdup(listing != NULL ? listing : "");
    for (char *rest = copy, *line; (line = strsep(&rest, "\n")) != NULL;) {
        CLEANUP(freep) char *rule = strstr(line, STACK_NETWORK) != NULL ? essence(line) : NULL;
        if (text_equal(rule, match)) {
            return true;
        }
    }
    return false;
}

/* Each pass that the chain lacks; the text of its table is read once. */
static void missing_passes(struct nft *nft, const struct chain *chain, struct argv *ret_missing)
{
    CLEANUP(freep) char *listing = NULL;
    CLEANUP(freep) char *command = xasprintf("list table %s %s", chain->family, chain->table);
    (void)nft_list(nft, command, &listing, NULL);
    for (size_t i = 0; i < ARRAY_LENGTH(passes); i++) {
        if (text_equal(passes[i].hook, chain->hook) && !lets_through(listing, passes[i].match)) {
            argv_push(ret_missing, passes[i].match);
        }
    }
}

/* Docker empties its own chains and leaves DOCKER-USER, the first thing its FORWARD asks, to others. */
static const char *target_of(struct nft *nft, const struct chain *chain)
{
    CLEANUP(freep) char *listing = NULL;
    CLEANUP(freep) char *command = xasprintf("list chain %s %s DOCKER-USER", chain->family, chain->table);
    bool docker = text_equal(chain->hook, "forward") && nft_list(nft, command, &listing, NULL) == 0;
    return docker ? "DOCKER-USER" : chain->name;
}

static int judge(struct stack *stack, json_t *changes, struct error *err)
{
    CLEANUP(nft_closep) struct nft *nft = NULL;
    CLEANUP(freep) struct chain *chains = NULL;
    size_t count = 0;
    (void)stack;
    if (nft_open(&nft, err) < 0 || list_chains(nft, &chains, &count, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        CLEANUP(argv_reset) struct argv missing = {0};
        missing_passes(nft, &chains[i], &missing);
        if (missing.count > 0) {
            CLEANUP(freep)
            char *item = xasprintf("chain %s of %s %s", chains[i].name, chains[i].family, chains[i].table);
            table_change(changes, NAME, item, "drops " STACK_NETWORK, "lets " STACK_NETWORK " through",
                         text_equal(chains[i].hook, "forward") ? "boxes do not reach the internet"
                                                               : "boxes get no address and resolve nothing");
        }
    }
    return 0;
}

static int converge(struct stack *stack, const json_t *changes, struct narrator *narrator, struct error *err)
{
    CLEANUP(nft_closep) struct nft *nft = NULL;
    CLEANUP(freep) struct chain *chains = NULL;
    CLEANUP(buffer_reset) struct buffer text = {0};
    size_t count = 0;
    (void)stack;
    (void)changes;
    if (nft_open(&nft, err) < 0 || list_chains(nft, &chains, &count, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        CLEANUP(argv_reset) struct argv missing = {0};
        const char *target = target_of(nft, &chains[i]);
        missing_passes(nft, &chains[i], &missing);
        for (size_t k = 0; k < missing.count; k++) {
            buffer_append_format(&text, "insert rule %s %s %s %s " COMMENT "\n", chains[i].family, chains[i].table,
                                 target, missing.items[k]);
        }
        if (missing.count > 0) {
            narrate_note(narrator,
                         "the chain %s of %s %s now lets " STACK_NETWORK " through; its owner may forget that "
                         "when it is reloaded: box doctor tells",
                         target, chains[i].family, chains[i].table);
        }
    }
    return text.length == 0 ? 0 : nft_apply(nft, text.data, err);
}

/* One that lets boxnet through under our comment. iptables, where it put the rule back from a file, keeps the comment
 * where nobody else can read it: that there is one has to do. */
static bool is_ours(const json_t *rule)
{
    size_t i;
    const json_t *part;
    bool comment = text_equal(json_text(rule, "comment"), "box"), boxnet = false, accept = false;
    json_array_foreach(json_object_get(rule, "expr"), i, part)
    {
        const json_t *match = json_object_get(part, "match");
        comment |= text_equal(json_text(json_object_get(part, "xt"), "name"), "comment");
        boxnet |= text_equal(json_text(match, "right"), STACK_NETWORK);
        accept |= json_object_get(part, "accept") != NULL;
    }
    return comment && boxnet && accept;
}

/* Every rule of ours, in whichever table: "FAMILY TABLE CHAIN handle N". */
static int our_rules(struct nft *nft, struct argv *ret_rules, struct error *err)
{
    static const char *const families[] = {"ip", "inet"};
    for (size_t f = 0; f < ARRAY_LENGTH(families); f++) {
        CLEANUP(freep) char *tables = NULL;
        if (nft_list(nft, "list tables", &tables, err) < 0) {
            return -1;
        }
        for (char *rest = tables, *line; (line = strsep(&rest, "\n")) != NULL;) {
            CLEANUP(json_freep) json_t *listing = NULL;
            char *word = line, *type = strsep(&word, " "), *family = strsep(&word, " "), *table = strsep(&word, " ");
            size_t i;
            const json_t *entry;
            if (!text_equal(type, "table") || !text_equal(family, families[f]) || table == NULL || is_known(table)) {
                continue;
            }
            CLEANUP(freep) char *command = xasprintf("list table %s %s", family, table);
            (void)nft_query(nft, command, &listing, NULL);
            json_array_foreach(listing, i, entry)
            {
                const json_t *rule = json_object_get(entry, "rule");
                if (is_ours(rule)) {
                    argv_push_format(ret_rules, "%s %s %s handle %lld", family, table, json_text(rule, "chain"),
                                     (long long)json_number(rule, "handle", 0));
                }
            }
        }
    }
    return 0;
}

static int remove_passes(struct stack *stack, struct narrator *narrator, struct error *err)
{
    CLEANUP(nft_closep) struct nft *nft = NULL;
    CLEANUP(argv_reset) struct argv rules = {0};
    (void)stack;
    (void)narrator;
    if (nft_open(&nft, err) < 0 || our_rules(nft, &rules, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < rules.count; i++) {
        CLEANUP(freep) char *command = xasprintf("delete rule %s", rules.items[i]);
        CLEANUP(error_reset) struct error failure = {0};
        if (nft_apply(nft, command, &failure) < 0 && failure.code != ERR_NOT_FOUND) {
            return error_move(err, &failure);
        }
    }
    return 0;
}

static int stands(struct stack *stack, struct argv *ret_standing, struct error *err)
{
    CLEANUP(nft_closep) struct nft *nft = NULL;
    CLEANUP(argv_reset) struct argv rules = {0};
    (void)stack;
    if (nft_open(&nft, err) < 0 || our_rules(nft, &rules, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < rules.count; i++) {
        argv_push_format(ret_standing, "nft rule %s", rules.items[i]);
    }
    return 0;
}

const struct stack_object item_neighbours = {
    .name = NAME,
    .why = "another firewall drops what boxes send",
    .needs_root = true,
    .budget = 5000,
    .judge = judge,
    .converge = converge,
    .remove = remove_passes,
    .stands = stands,
    .rank = 3,
};
