/* firewalld rejects what comes from an interface that it has no zone for, and forgets rules that others lay in its
 * table: so boxnet gets a zone of its own there (DHCP and DNS of the host, nothing else) and a policy that lets it out.
 * The walls stay what they are. A zone that somebody else gave boxnet is left alone. Not for firewalls whose chains
 * drop by policy: item_neighbours.c. */
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/text.h"
#include "host/nft.h"
#include "stack/names.h"
#include "stack/table.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define NAME    "firewalld"
#define ZONE    "box"
#define POLICY  "box-out"
#define MARK    "<description>Made by box setup-host.</description>"
#define CEILING (256 * 1024)
#define TABLE   "inet firewalld"

static const struct {
    const char *path, *text;
} files[] = {
    {"/etc/firewalld/zones/" ZONE ".xml", "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"
                                          "<zone>\n"
                                          "  <short>" ZONE "</short>\n"
                                          "  " MARK "\n"
                                          "  <interface name=\"" STACK_NETWORK "\"/>\n"
                                          "  <service name=\"dhcp\"/>\n"
                                          "  <service name=\"dns\"/>\n"
                                          "</zone>\n"},
    {"/etc/firewalld/policies/" POLICY ".xml", "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"
                                               "<policy target=\"ACCEPT\">\n"
                                               "  <short>" POLICY "</short>\n"
                                               "  " MARK "\n"
                                               "  <ingress-zone name=\"" ZONE "\"/>\n"
                                               "  <egress-zone name=\"ANY\"/>\n"
                                               "</policy>\n"},
};

/* What its live chains must say, once boxnet is in the zone. */
static const struct {
    const char *chain, *words, *item, *why;
} rules[] = {
    {"filter_IN_" ZONE "_allow", "udp dport 67 ", "zone " ZONE " dhcp", "boxes get no address"},
    {"filter_IN_" ZONE "_allow", "udp dport 53 ", "zone " ZONE " dns over udp", "boxes resolve nothing"},
    {"filter_IN_" ZONE "_allow", "tcp dport 53 ", "zone " ZONE " dns over tcp", "boxes lack long answers"},
    {"filter_FORWARD_POLICIES_pre", "filter_FWD_policy_" POLICY, "policy " POLICY, "boxes do not reach the internet"},
    {"filter_FWD_policy_" POLICY, "\taccept", "policy " POLICY " target", "boxes do not reach the internet"},
};

/* The text of a chain; NULL where it is not there. The caller frees. */
static int list_chain(struct nft *nft, const char *chain, char **ret_text, struct error *err)
{
    CLEANUP(error_reset) struct error failure = {0};
    CLEANUP(freep) char *command = xasprintf("list chain " TABLE " %s", chain);
    char *text = NULL;
    if (nft_list(nft, command, &text, &failure) < 0 && failure.code != ERR_NOT_FOUND) {
        return error_move(err, &failure);
    }
    *ret_text = text;
    return 0;
}

/* The zone that answers for boxnet, cut out of the text; NULL where none does. */
static const char *find_zone(char *text)
{
    static const char lead[] = "goto filter_IN_";
    for (char *rest = text, *line; (line = strsep(&rest, "\n")) != NULL;) {
        char *zone = strstr(line, lead);
        if (zone != NULL && strstr(line, "\"" STACK_NETWORK "\"") != NULL) {
            zone += sizeof(lead) - 1;
            zone[strcspn(zone, " \t;")] = '\0';
            return zone;
        }
    }
    return NULL;
}

/* Content of a file of ours: 1 where it is there, 0 where nothing is, ERR_STATE where it is somebody else's. */
static int look_at_file(const char *path, struct buffer *text, struct error *err)
{
    CLEANUP(error_reset) struct error failure = {0};
    if (fd_read_file(path, CEILING, text, &failure) < 0) {
        return failure.code == ERR_NOT_FOUND ? 0 : error_move(err, &failure);
    }
    if (text->data == NULL || strstr(text->data, MARK) == NULL) {
        (void)error_set(err, ERR_STATE, "%s was not made by box: it is left alone", path);
        return error_remedy(err, "rename it, for box needs that name in firewalld: %s", path);
    }
    return 1;
}

static int judge_rules(struct nft *nft, json_t *changes, struct error *err)
{
    for (size_t i = 0; i < ARRAY_LENGTH(rules); i++) {
        CLEANUP(freep) char *text = NULL;
        if (list_chain(nft, rules[i].chain, &text, err) < 0) {
            return -1;
        }
        if (text == NULL || strstr(text, rules[i].words) == NULL) {
            table_change(changes, NAME, rules[i].item, NULL, "accept", rules[i].why);
        }
    }
    return 0;
}

static int judge(struct stack *stack, json_t *changes, struct error *err)
{
    CLEANUP(nft_closep) struct nft *nft = NULL;
    CLEANUP(freep) char *zones = NULL;
    if (nft_open(&nft, err) < 0 || list_chain(nft, "filter_INPUT_ZONES", &zones, err) < 0) {
        return -1;
    }
    if (zones == NULL) {
        return 0; /* it does not run here */
    }
    const char *zone = find_zone(zones);
    if (zone != NULL && !text_equal(zone, ZONE)) {
        argv_push(&stack->notes, "somebody put " STACK_NETWORK " into a zone of firewalld: it is left there, and "
                                 "what boxes lack under it is told by box doctor");
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
        CLEANUP(buffer_reset) struct buffer text = {0};
        if (look_at_file(files[i].path, &text, err) < 0) {
            return -1;
        }
    }
    if (zone == NULL) {
        table_change(changes, NAME, "zone of " STACK_NETWORK, NULL, ZONE, "boxes get no address and no network");
        return 0;
    }
    return judge_rules(nft, changes, err);
}

static int reload(struct narrator *narrator, struct error *err)
{
    static const char *const argv[] = {"firewall-cmd", "--reload", NULL};
    struct process_options options = {.budget = 40000, .narrator = narrator};
    return process_check(argv, &options, NULL, err) < 0 ? error_wrap(err, "cannot have firewalld read its zones") : 0;
}

static int converge(struct stack *stack, const json_t *changes, struct narrator *narrator, struct error *err)
{
    (void)stack;
    (void)changes;
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
        if (fd_write_file(files[i].path, files[i].text, strlen(files[i].text), 0644, err) < 0) {
            return -1;
        }
    }
    narrate_note(narrator, "firewalld gets the zone " ZONE " for " STACK_NETWORK " and is reloaded: what somebody "
                           "told it without --permanent is gone");
    return reload(narrator, err);
}

static bool runs(void)
{
    CLEANUP(nft_closep) struct nft *nft = NULL;
    CLEANUP(freep) char *zones = NULL;
    return nft_open(&nft, NULL) == 0 && list_chain(nft, "filter_INPUT_ZONES", &zones, NULL) == 0 && zones != NULL;
}

static bool is_ours(const char *path)
{
    CLEANUP(buffer_reset) struct buffer text = {0};
    return look_at_file(path, &text, NULL) > 0;
}

/* True where it still has rules of the zone in the kernel: files that a killed run removed without telling it. */
static bool zone_is_live(void)
{
    CLEANUP(nft_closep) struct nft *nft = NULL;
    CLEANUP(freep) char *chain = NULL;
    return nft_open(&nft, NULL) == 0 && list_chain(nft, "filter_IN_" ZONE "_allow", &chain, NULL) == 0 && chain != NULL;
}

static int remove_zone(struct stack *stack, struct narrator *narrator, struct error *err)
{
    bool removed = false, foreign = false;
    (void)stack;
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
        if (is_ours(files[i].path)) {
            removed = true;
            if (unlink(files[i].path) < 0 && errno != ENOENT) {
                return error_set_errno(err, errno, "cannot remove %s", files[i].path);
            }
        } else {
            foreign |= access(files[i].path, F_OK) == 0;
        }
    }
    return (removed && runs()) || (!foreign && zone_is_live()) ? reload(narrator, err) : 0;
}

static int stands(struct stack *stack, struct argv *ret_standing, struct error *err)
{
    bool ours = false, foreign = false;
    (void)stack;
    (void)err;
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
        bool mine = is_ours(files[i].path);
        ours |= mine;
        foreign |= !mine && access(files[i].path, F_OK) == 0;
        if (mine) {
            argv_push_format(ret_standing, "file %s", files[i].path);
        }
    }
    if (!ours && !foreign && zone_is_live()) {
        argv_push(ret_standing, "firewalld's zone " ZONE);
    }
    return 0;
}

const struct stack_object item_firewalld = {
    .name = NAME,
    .why = "firewalld rejects what boxes send",
    .needs_root = true,
    .budget = 60000,
    .judge = judge,
    .converge = converge,
    .remove = remove_zone,
    .stands = stands,
    .rank = 3,
};
