/* Mirrors src/box/contract.c. */
#include "base/argv.h"
#include "base/memory.h"
#include "box/contract.h"
#include "unit.h"

#include <string.h>

/* An instance as the daemon tells a box that keeps the contract. */
static json_t *sound(void)
{
    const char *text =
        "{\"name\":\"a\",\"type\":\"container\",\"profiles\":[\"box-net\"],"
        "\"config\":{\"user.box\":\"1\",\"security.nesting\":\"true\",\"limits.cpu\":\"2\"},"
        "\"expanded_config\":{\"user.box\":\"1\",\"security.nesting\":\"true\",\"limits.cpu\":\"2\","
        "\"volatile.eth0.hwaddr\":\"00:16:3e:00:00:01\",\"image.os\":\"Debian\",\"boot.autostart\":\"true\","
        "\"cloud-init.user-data\":\"#cloud-config\\n\"},"
        "\"devices\":{\"root\":{\"type\":\"disk\",\"path\":\"/\",\"pool\":\"default\",\"size\":\"10GiB\"}},"
        "\"expanded_devices\":{\"root\":{\"type\":\"disk\",\"path\":\"/\",\"pool\":\"default\",\"size\":\"10GiB\"},"
        "\"eth0\":{\"type\":\"nic\",\"name\":\"eth0\",\"network\":\"boxnet\",\"security.port_isolation\":\"true\","
        "\"security.mac_filtering\":\"true\",\"security.ipv4_filtering\":\"true\"}}}";
    json_t *instance = json_loads(text, 0, NULL);

    assert_non_null(instance);
    return instance;
}

static size_t count(const json_t *instance)
{
    CLEANUP(argv_reset) struct argv deviations = {0};

    contract_check(instance, &deviations);
    return deviations.count;
}

/* Exactly one deviation, and it names `word`. */
static void assert_deviates(const json_t *instance, const char *word)
{
    CLEANUP(argv_reset) struct argv deviations = {0};

    contract_check(instance, &deviations);
    if (deviations.count != 1) {
        CLEANUP(freep) char *all = argv_join(&deviations, "; ");
        fail_msg("%s: %zu deviations: %s", word, deviations.count, all ? all : "");
    }
    if (!strstr(deviations.items[0], word)) {
        fail_msg("'%s' does not name %s", deviations.items[0], word);
    }
}

static void set_config(json_t *instance, const char *key, const char *value)
{
    assert_int_equal(json_object_set_new(json_object_get(instance, "expanded_config"), key, json_string(value)), 0);
}

static void set_device(json_t *instance, const char *name, const char *text)
{
    json_t *device = json_loads(text, 0, NULL);

    assert_non_null(device);
    assert_int_equal(json_object_set_new(json_object_get(instance, "expanded_devices"), name, device), 0);
}

static void lets_a_box_be(void **state)
{
    CLEANUP(json_freep) json_t *instance = sound();
    CLEANUP(json_freep) json_t *vm = sound();

    assert_int_equal(count(instance), 0);
    assert_int_equal(json_object_set_new(vm, "type", json_string("virtual-machine")), 0);
    set_config(vm, "security.secureboot", "false");
    assert_int_equal(count(vm), 0);
    set_device(vm, "config", "{\"type\":\"disk\",\"source\":\"cloud-init:config\"}");
    assert_int_equal(count(vm), 0);
}

static void wants_the_tag_of_either_generation(void **state)
{
    CLEANUP(json_freep) json_t *instance = sound();
    json_t *config = json_object_get(instance, "config");

    assert_int_equal(json_object_del(config, "user.box"), 0);
    assert_deviates(instance, "user.box");
    assert_int_equal(json_object_set_new(config, "user.claudebox", json_string("1")), 0);
    assert_int_equal(count(instance), 0);
}

static void wants_its_profile_alone(void **state)
{
    static const char *const rows[][2] = {{"[\"box-net\",\"default\"]", "default"},
                                          {"[\"default\",\"box-net\"]", "default"},
                                          {"[]", "box-net"},
                                          {"null", "box-net"}};

    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        CLEANUP(json_freep) json_t *instance = sound();
        json_t *profiles = json_loads(rows[i][0], JSON_DECODE_ANY, NULL);
        assert_int_equal(json_object_set_new(instance, "profiles", profiles), 0);
        assert_deviates(instance, rows[i][1]);
    }
}

static void refuses_keys_that_loosen_the_confinement(void **state)
{
    static const char *const rows[][2] = {
        {"security.privileged", "true"},
        {"raw.lxc", "lxc.apparmor.profile=unconfined"},
        {"raw.apparmor", "mount,"},
        {"raw.idmap", "both 0 0"},
        {"raw.qemu", "-net none"},
        {"raw.seccomp", "2"},
        {"security.syscalls.intercept.mount", "true"},
        {"security.syscalls.intercept.bpf", "true"},
        {"security.syscalls.allow", "reboot"},
        {"security.idmap.base", "0"},
        {"security.guestapi.images", "true"},
        {"security.of_a_later_incus", "true"},
        {"linux.kernel_modules", "kvm"},
        {"linux.sysctl.net.ipv4.ip_forward", "1"},
        {"nvidia.runtime", "true"},
        {"unheard.of", "1"},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        CLEANUP(json_freep) json_t *instance = sound();
        const char *why = NULL;
        set_config(instance, rows[i][0], rows[i][1]);
        assert_deviates(instance, rows[i][0]);
        assert_false(contract_allows_key(rows[i][0], rows[i][1], &why));
        assert_non_null(why);
    }
}

static void lets_keys_be_that_loosen_nothing(void **state)
{
    static const char *const rows[][2] = {
        {"security.privileged", "false"}, {"security.nesting", "false"},   {"security.secureboot", "false"},
        {"user.anything", "1"},           {"limits.memory", "2GiB"},       {"boot.autostart", "false"},
        {"snapshots.schedule", "@daily"}, {"environment.LANG", "C.UTF-8"}, {"security.protection.delete", "true"},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        CLEANUP(json_freep) json_t *instance = sound();
        set_config(instance, rows[i][0], rows[i][1]);
        assert_int_equal(count(instance), 0);
    }
}

static void refuses_devices_of_the_host(void **state)
{
    static const char *const rows[][2] = {
        {"data", "{\"type\":\"disk\",\"source\":\"/\",\"path\":\"/mnt\"}"},
        {"data", "{\"type\":\"disk\",\"source\":\"/srv\",\"path\":\"/srv\",\"readonly\":\"true\"}"},
        {"data", "{\"type\":\"disk\",\"pool\":\"default\",\"source\":\"shared\",\"path\":\"/srv\"}"},
        {"root", "{\"type\":\"disk\",\"path\":\"/\",\"source\":\"/\"}"},
        {"console", "{\"type\":\"unix-char\",\"source\":\"/dev/mem\"}"},
        {"block", "{\"type\":\"unix-block\",\"source\":\"/dev/sda\"}"},
        {"plug", "{\"type\":\"unix-hotplug\"}"},
        {"gpu", "{\"type\":\"gpu\"}"},
        {"stick", "{\"type\":\"usb\"}"},
        {"card", "{\"type\":\"pci\",\"address\":\"0:0\"}"},
        {"ib", "{\"type\":\"infiniband\"}"},
        {"later", "{\"type\":\"of-a-later-incus\"}"},
        {"none", "{}"},
        {"web", "{\"type\":\"proxy\",\"listen\":\"tcp:127.0.0.1:80\",\"connect\":\"tcp:127.0.0.1:80\"}"},
        {"door-80", "{\"type\":\"proxy\",\"listen\":\"tcp:0.0.0.0:80\",\"connect\":\"tcp:127.0.0.1:80\"}"},
        {"door-80",
         "{\"type\":\"proxy\",\"bind\":\"instance\",\"listen\":\"tcp:127.0.0.1:80\",\"connect\":\"tcp:127.0.0.1:80\"}"},
        {"door-80", "{\"type\":\"proxy\",\"connect\":\"tcp:127.0.0.1:80\"}"},
        {"eth1", "{\"type\":\"nic\",\"network\":\"boxnet\",\"security.port_isolation\":\"true\","
                 "\"security.mac_filtering\":\"true\",\"security.ipv4_filtering\":\"true\"}"},
        {"eth1", "{\"type\":\"nic\",\"nictype\":\"physical\",\"parent\":\"eno1\"}"},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        CLEANUP(json_freep) json_t *instance = sound();
        set_device(instance, rows[i][0], rows[i][1]);
        assert_deviates(instance, rows[i][0]);
    }
}

static void lets_a_door_open_on_the_loopback(void **state)
{
    CLEANUP(json_freep) json_t *instance = sound();

    set_device(
        instance, "door-8080",
        "{\"type\":\"proxy\",\"bind\":\"host\",\"listen\":\"tcp:127.0.0.1:8080\",\"connect\":\"tcp:127.0.0.1:80\"}");
    set_device(instance, "door-81",
               "{\"type\":\"proxy\",\"listen\":\"tcp:127.0.0.1:81\",\"connect\":\"tcp:127.0.0.1:81\"}");
    assert_int_equal(count(instance), 0);
}

static void wants_the_filters_of_its_nic(void **state)
{
    static const char *const keys[] = {"security.port_isolation", "security.mac_filtering", "security.ipv4_filtering"};

    for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
        CLEANUP(json_freep) json_t *instance = sound();
        json_t *nic = json_path(instance, "expanded_devices", "eth0", NULL);
        assert_int_equal(json_object_set_new(nic, keys[i], json_string("false")), 0);
        assert_deviates(instance, "eth0");
        assert_int_equal(json_object_del(nic, keys[i]), 0);
        assert_deviates(instance, "eth0");
    }
}

static void wants_its_nic_on_boxnet_and_nothing_added(void **state)
{
    static const char *const rows[][2] = {{"network", "lan"},
                                          {"security.acls", "open"},
                                          {"ipv4.routes", "192.168.0.0/16"},
                                          {"ipv4.routes.external", "1.2.3.4/32"},
                                          {"parent", "eno1"},
                                          {"vlan", "7"},
                                          {"security.trusted", "true"}};

    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        CLEANUP(json_freep) json_t *instance = sound();
        json_t *nic = json_path(instance, "expanded_devices", "eth0", NULL);
        assert_int_equal(json_object_set_new(nic, rows[i][0], json_string(rows[i][1])), 0);
        assert_deviates(instance, "eth0");
    }
}

static void wants_nic_and_disk_to_be_there(void **state)
{
    static const char *const names[] = {"eth0", "root"};

    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        CLEANUP(json_freep) json_t *instance = sound();
        assert_int_equal(json_object_del(json_object_get(instance, "expanded_devices"), names[i]), 0);
        assert_deviates(instance, names[i]);
    }
}

static void never_calls_nonsense_sound(void **state)
{
    const char *const texts[] = {
        "{}",
        "[]",
        "1",
        "{\"config\":[],\"profiles\":{},\"expanded_devices\":7}",
        "{\"config\":{\"user.box\":\"1\"},\"profiles\":[1,null]}",
        "{\"profiles\":[\"box-net\"],\"expanded_config\":{\"raw.lxc\":7},\"expanded_devices\":{\"eth0\":[]}}"};

    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
        CLEANUP(json_freep) json_t *instance = json_loads(texts[i], JSON_DECODE_ANY, NULL);
        assert_non_null(instance);
        assert_true(count(instance) > 0);
    }
    assert_true(count(NULL) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lets_a_box_be),
        cmocka_unit_test(wants_the_tag_of_either_generation),
        cmocka_unit_test(wants_its_profile_alone),
        cmocka_unit_test(refuses_keys_that_loosen_the_confinement),
        cmocka_unit_test(lets_keys_be_that_loosen_nothing),
        cmocka_unit_test(refuses_devices_of_the_host),
        cmocka_unit_test(lets_a_door_open_on_the_loopback),
        cmocka_unit_test(wants_the_filters_of_its_nic),
        cmocka_unit_test(wants_its_nic_on_boxnet_and_nothing_added),
        cmocka_unit_test(wants_nic_and_disk_to_be_there),
        cmocka_unit_test(never_calls_nonsense_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
