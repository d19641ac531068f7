/* Mirrors src/box/rehome.c: what a move onto boxnet changes, and that taking it back leaves nothing of it. */
#include "base/memory.h"
#include "box/rehome.h"
#include "unit.h"

#include <string.h>

/* As the daemon shows a box whose limit, disk and NIC come from the profile of the older generation. */
static const char older[] =
    "{'name': 'a', 'architecture': 'x86_64', 'ephemeral': false, 'description': 'mine', 'profiles': ['claude-dev'],"
    " 'config': {'user.claudebox': '1', 'limits.cpu': '2', 'volatile.eth0.hwaddr': '10:66:6a:00:00:01'},"
    " 'expanded_config': {'user.claudebox': '1', 'limits.cpu': '2', 'volatile.eth0.hwaddr': '10:66:6a:00:00:01',"
    "                     'limits.memory': '2GiB', 'raw.lxc': 'x'},"
    " 'devices': {'eth0': {'type': 'nic', 'network': 'claudenet', 'ipv4.address': '10.87.0.9'}},"
    " 'expanded_devices': {'eth0': {'type': 'nic', 'network': 'claudenet', 'ipv4.address': '10.87.0.9'},"
    "                      'root': {'type': 'disk', 'path': '/', 'pool': 'fast', 'size': '9GiB'},"
    "                      'home': {'type': 'disk', 'source': '/home', 'path': '/mnt'}}}";
static const char profile[] =
    "{'devices': {'eth0': {'type': 'nic', 'network': 'boxnet'}, 'root': {'type': 'disk', 'path': '/', 'pool': 'default'}}}";

static json_t *parse(const char *text)
{
    CLEANUP(freep) char *copy = xstrdup(text);
    json_t *object = NULL;

    for (char *c = copy; *c; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    assert_int_equal(json_parse(copy, strlen(copy), "test", &object, NULL), 0);
    return object;
}

static json_t *move(const json_t *instance, bool ran, struct argv *left, struct argv *refused)
{
    CLEANUP(json_freep) json_t *given = parse(profile);

    return rehome_body(instance, given, ran, left, refused);
}

static void the_older_network_and_profile_tell_it(void **state)
{
    CLEANUP(json_freep) json_t *by_profile = parse("{'profiles': ['claude-dev'], 'config': {}}");
    CLEANUP(json_freep) json_t *by_network =
        parse("{'profiles': ['x'], 'config': {}, 'expanded_devices': {'n': {'type': 'nic', 'parent': 'claudenet'}}}");
    CLEANUP(json_freep) json_t *neither = parse(
        "{'profiles': ['box-net'], 'config': {}, 'expanded_devices': {'eth0': {'type': 'nic', 'network': 'boxnet'}}}");

    assert_true(rehome_is_older(by_profile));
    assert_true(rehome_is_older(by_network));
    assert_false(rehome_is_older(neither));
    assert_false(rehome_is_under_way(neither));
}

static void what_the_profile_gave_stays_and_what_the_contract_forbids_does_not(void **state)
{
    CLEANUP(json_freep) json_t *instance = parse(older);
    CLEANUP(argv_reset) struct argv left = {0};
    CLEANUP(argv_reset) struct argv refused = {0};
    CLEANUP(json_freep) json_t *body = move(instance, true, &left, &refused);

    assert_non_null(body);
    assert_int_equal(refused.count, 0);
    assert_string_equal(json_string_value(json_array_get(json_object_get(body, "profiles"), 0)), "box-net");
    assert_int_equal(json_array_size(json_object_get(body, "profiles")), 1);
    assert_string_equal(json_text(json_object_get(body, "config"), "limits.memory"), "2GiB");
    assert_string_equal(json_text(json_object_get(body, "config"), "user.claudebox"), "1");
    assert_string_equal(json_text(json_path(body, "devices", "root", NULL), "pool"), "fast");
    assert_string_equal(json_text(json_path(body, "devices", "root", NULL), "size"), "9GiB");
    assert_null(json_path(body, "devices", "eth0", NULL));
    assert_int_equal(left.count, 2);
    assert_non_null(strstr(left.items[0], "raw.lxc"));
    assert_non_null(strstr(left.items[1], "device home"));
    assert_string_equal(json_text(body, "description"), "mine");
}

static void what_the_box_has_off_the_contract_itself_is_refused(void **state)
{
    CLEANUP(json_freep) json_t *instance = parse(older);
    CLEANUP(argv_reset) struct argv left = {0};
    CLEANUP(argv_reset) struct argv refused = {0};

    json_object_set_new(json_object_get(instance, "config"), "security.privileged", json_string("true"));
    json_object_set_new(json_object_get(instance, "devices"), "gpu", json_pack("{s:s}", "type", "gpu"));
    assert_null(move(instance, true, &left, &refused));
    assert_int_equal(refused.count, 2);
}

/* The instance as the daemon has it after the PUT. */
static void put(json_t *instance, const json_t *body)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)body, key, value)
    {
        json_object_set(instance, key, value);
    }
}

static void taken_back_it_is_what_it_was(void **state)
{
    CLEANUP(json_freep) json_t *instance = parse(older);
    CLEANUP(json_freep) json_t *before = parse(older);
    CLEANUP(argv_reset) struct argv left = {0};
    CLEANUP(argv_reset) struct argv refused = {0};
    CLEANUP(json_freep) json_t *body = move(instance, true, &left, &refused);

    put(instance, body);
    assert_true(rehome_is_under_way(instance));
    assert_true(rehome_ran(instance));
    /* The daemon's own notes change meanwhile, and stay. */
    json_object_set_new(json_object_get(instance, "config"), "volatile.last_state.power", json_string("STOPPED"));
    CLEANUP(json_freep) json_t *undo = rehome_undo_body(instance);

    assert_non_null(undo);
    put(instance, undo);
    assert_true(rehome_is_under_way(instance));
    assert_true(rehome_ran(instance));
    assert_null(rehome_undo_body(instance));
    json_object_del(json_object_get(instance, "config"), REHOME_NOTE);
    json_object_del(json_object_get(instance, "config"), "volatile.last_state.power");
    assert_true(json_equal(instance, before));
}

static void a_note_that_cannot_be_read_takes_nothing_back(void **state)
{
    static const char *const notes[] = {"", "null", "[]", "{\"ran\": 1}", "{\"profiles\": {}, \"devices\": []}", "{"};

    for (size_t i = 0; i < ARRAY_LENGTH(notes); i++) {
        CLEANUP(json_freep) json_t *instance = json_pack("{s:{s:s}}", "config", REHOME_NOTE, notes[i]);

        assert_true(rehome_is_under_way(instance));
        assert_false(rehome_ran(instance));
        assert_null(rehome_undo_body(instance));
    }
}

static void notes_are_read_back(void **state)
{
    CLEANUP(json_freep) json_t *ran = rehome_note_body(true);
    CLEANUP(json_freep) json_t *stopped = rehome_note_body(false);
    CLEANUP(json_freep) json_t *end = rehome_end_body();

    assert_true(rehome_ran(ran));
    assert_false(rehome_ran(stopped));
    assert_string_equal(json_text(json_object_get(end, "config"), REHOME_NOTE), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_older_network_and_profile_tell_it),
        cmocka_unit_test(what_the_profile_gave_stays_and_what_the_contract_forbids_does_not),
        cmocka_unit_test(what_the_box_has_off_the_contract_itself_is_refused),
        cmocka_unit_test(taken_back_it_is_what_it_was),
        cmocka_unit_test(a_note_that_cannot_be_read_takes_nothing_back),
        cmocka_unit_test(notes_are_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
