/* Mirrors src/box/mintbody.c: the request that creates a box. */
#include "base/memory.h"
#include "box/mintbody.h"
#include "box/tag.h"
#include "unit.h"

#include <string.h>

static json_t *make(bool vm, const char *fingerprint, const char *user_data, const char *disk)
{
    struct template template = {
        .name = (char *)"blank",
        .image = (char *)"debian/13",
        .user = (char *)"dev",
        .user_data = (char *)user_data,
        .user_data_length = strlen(user_data),
        .digest = "abc",
    };
    const struct mint_request request = {
        .name = "a",
        .template = &template,
        .limits = {.cpu = (char *)"2", .disk = (char *)disk},
        .version = "1",
    };
    const struct mintbody body = {
        .request = &request,
        .vm = vm,
        .mint_id = "0123",
        .created = "2026-01-01T00:00:00Z",
        .pool = "default",
        .fingerprint = fingerprint,
        .server = "https://images.example",
        .server_alias = "debian/13/cloud",
    };

    return mintbody_make(&body);
}

static const char *config(const json_t *value, const char *key)
{
    return json_text(json_object_get(value, "config"), key);
}

static void is_nobodys_at_no_moment(void **state)
{
    CLEANUP(json_freep) json_t *value = make(false, "f00", "#cloud-config\n", NULL);

    assert_true(tag_is_box(value));
    assert_string_equal(config(value, TAG_STATE), TAG_STATE_MINTING);
    assert_string_equal(config(value, TAG_MINT), "0123");
    assert_string_equal(config(value, TAG_INSTANCE_ID), "box-0123");
    assert_string_equal(config(value, TAG_USER), "dev");
    assert_string_equal(config(value, TAG_FINGERPRINT), "f00");
    assert_string_equal(json_string_value(json_array_get(json_object_get(value, "profiles"), 0)), "box-net");
    assert_int_equal(json_array_size(json_object_get(value, "profiles")), 1);
}

static void a_container_nests_and_a_vm_boots_any_kernel(void **state)
{
    CLEANUP(json_freep) json_t *container = make(false, "f00", "", NULL);
    CLEANUP(json_freep) json_t *vm = make(true, "f00", "", NULL);

    assert_string_equal(json_text(container, "type"), "container");
    assert_string_equal(config(container, "security.nesting"), "true");
    assert_null(config(container, "security.secureboot"));
    assert_string_equal(json_text(vm, "type"), "virtual-machine");
    assert_string_equal(config(vm, "security.secureboot"), "false");
    assert_null(config(vm, "security.nesting"));
}

static void only_the_limits_that_are_set_are_in_it(void **state)
{
    CLEANUP(json_freep) json_t *without = make(false, "f00", "", NULL);
    CLEANUP(json_freep) json_t *with = make(false, "f00", "", "10GiB");

    assert_string_equal(config(without, "limits.cpu"), "2");
    assert_null(config(without, "limits.memory"));
    assert_int_equal(json_object_size(json_object_get(without, "devices")), 0);
    const json_t *root = json_path(with, "devices", "root", NULL);

    assert_string_equal(json_text(root, "size"), "10GiB");
    assert_string_equal(json_text(root, "pool"), "default");
    assert_string_equal(json_text(root, "path"), "/");
    assert_null(json_text(root, "source"));
}

static void a_local_image_goes_by_its_fingerprint(void **state)
{
    CLEANUP(json_freep) json_t *local = make(false, "f00", "", NULL);
    CLEANUP(json_freep) json_t *remote = make(false, NULL, "", NULL);

    assert_string_equal(json_string_value(json_path(local, "source", "fingerprint", NULL)), "f00");
    assert_null(json_path(local, "source", "server", NULL));
    assert_string_equal(json_string_value(json_path(remote, "source", "alias", NULL)), "debian/13/cloud");
    assert_string_equal(json_string_value(json_path(remote, "source", "protocol", NULL)), "simplestreams");
    assert_null(config(remote, TAG_FINGERPRINT));
}

static void the_end_of_the_user_data_travels_by_itself(void **state)
{
    static const struct {
        const char *data, *tail;
    } cases[] = {{"a", "-"}, {"a\n", "n"}, {"a\n\n\n", "nnn"}, {"a\r\n", "rn"}, {"a\n b", "-"}, {"\n", "n"}};

    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        CLEANUP(json_freep) json_t *value = make(false, "f00", cases[i].data, NULL);

        assert_string_equal(config(value, "cloud-init.user-data"), cases[i].data);
        assert_string_equal(config(value, TAG_TAIL), cases[i].tail);
    }
    CLEANUP(json_freep) json_t *none = make(false, "f00", "", NULL);

    assert_null(config(none, "cloud-init.user-data"));
    assert_null(config(none, TAG_TAIL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_nobodys_at_no_moment),
        cmocka_unit_test(a_container_nests_and_a_vm_boots_any_kernel),
        cmocka_unit_test(only_the_limits_that_are_set_are_in_it),
        cmocka_unit_test(a_local_image_goes_by_its_fingerprint),
        cmocka_unit_test(the_end_of_the_user_data_travels_by_itself),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
