/* Mirrors src/box/reduce.c: what is left of a configuration. */
#include "base/memory.h"
#include "base/text.h"
#include "box/contract.h"
#include "box/reduce.h"
#include "unit.h"

#include <string.h>

static const char hostile[] =
    "{'name': 'a', 'architecture': 'x86_64', 'ephemeral': false, 'description': '', 'profiles': ['default', 'box-net'],"
    " 'config': {'user.box': '1', 'limits.cpu': '2', 'security.privileged': 'true', 'raw.lxc': 'x',"
    "            'volatile.eth0.hwaddr': '10:66:6a:00:00:01', 'volatile.idmap.next': '[]', "
    "'volatile.last_state.power': 'RUNNING'},"
    " 'devices': {'root': {'type': 'disk', 'path': '/', 'pool': 'default', 'size': '2GiB', 'raw.mount.options': 'x'},"
    "             'eth0': {'type': 'nic', 'network': 'boxnet', 'ipv4.address': '10.88.0.9', 'security.port_isolation': "
    "'true',"
    "                      'security.mac_filtering': 'true', 'security.ipv4_filtering': 'true'},"
    "             'door-80': {'type': 'proxy', 'listen': 'tcp:127.0.0.1:80', 'connect': 'tcp:127.0.0.1:80'},"
    "             'host': {'type': 'disk', 'source': '/', 'path': '/mnt'}}}";

static json_t *instance(void)
{
    char *text = xstrdup(hostile);

    for (char *c = text; *c; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    json_t *object = NULL;
    assert_int_equal(json_parse(text, strlen(text), "test", &object, NULL), 0);
    free(text);
    return object;
}

static bool has(const json_t *body, const char *part, const char *key)
{
    return json_path(body, part, key, NULL) != NULL;
}

static void a_new_machine_keeps_nothing_of_the_former(void **state)
{
    CLEANUP(json_freep) json_t *object = instance();
    CLEANUP(argv_reset) struct argv stripped = {0};
    const struct reduce_options options = {.fresh = true, .pool = "other"};
    CLEANUP(json_freep) json_t *body = reduce_body(object, &options, &stripped);

    assert_true(has(body, "config", "user.box"));
    assert_true(has(body, "config", "limits.cpu"));
    assert_true(has(body, "config", "volatile.idmap.next"));
    assert_false(has(body, "config", "volatile.eth0.hwaddr"));
    assert_false(has(body, "config", "volatile.last_state.power"));
    assert_false(has(body, "config", "security.privileged"));
    assert_false(has(body, "config", "raw.lxc"));
    assert_int_equal(json_object_size(json_object_get(body, "devices")), 1);
    assert_string_equal(json_text(json_path(body, "devices", "root", NULL), "pool"), "other");
    assert_null(json_path(body, "devices", "root", "raw.mount.options", NULL));
    assert_int_equal(json_array_size(json_object_get(body, "profiles")), 1);
    assert_int_equal(stripped.count, 5); /* two keys, the mount option, the host's disk, the profile */
    assert_true(reduce_differs(object, body));
}

static void the_same_machine_keeps_doors_and_pins(void **state)
{
    CLEANUP(json_freep) json_t *object = instance();
    CLEANUP(argv_reset) struct argv stripped = {0};
    const struct reduce_options options = {0};
    CLEANUP(json_freep) json_t *body = reduce_body(object, &options, &stripped);

    assert_true(has(body, "devices", "door-80"));
    assert_true(has(body, "devices", "eth0"));
    assert_true(has(body, "config", "volatile.eth0.hwaddr"));
    assert_false(has(body, "devices", "host"));
    assert_int_equal(stripped.count, 5);
}

static void what_is_reduced_keeps_the_contract(void **state)
{
    CLEANUP(json_freep) json_t *object = instance();
    CLEANUP(argv_reset) struct argv stripped = {0};
    CLEANUP(argv_reset) struct argv again = {0};
    const struct reduce_options options = {.fresh = true};
    CLEANUP(json_freep) json_t *body = reduce_body(object, &options, &stripped);
    CLEANUP(json_freep) json_t *twice = reduce_body(body, &options, &again);

    assert_int_equal(again.count, 0);
    assert_false(reduce_differs(body, twice));
    reduce_set(body, "limits.cpu", "3");
    assert_true(reduce_differs(body, twice));
    reduce_set(body, "limits.cpu", NULL);
    assert_false(has(body, "config", "limits.cpu"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_machine_keeps_nothing_of_the_former),
        cmocka_unit_test(the_same_machine_keeps_doors_and_pins),
        cmocka_unit_test(what_is_reduced_keeps_the_contract),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
