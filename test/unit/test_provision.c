/* Mirrors src/box/provision.c: which packages a distribution gets. */
#include "box/provision.h"

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/memory.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int plan(const char *text, bool vms, struct provision *ret_provision, struct error *err)
{
    char path[] = "/tmp/box-provision-XXXXXX";
    CLEANUP(fd_closep) int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text), NULL), 0);
    int result = provision_plan(path, vms, ret_provision, err);
    (void)unlink(path);
    return result;
}

static void debian_12_needs_its_backports(void **state)
{
    CLEANUP(provision_reset) struct provision provision = {0};
    (void)state;
    assert_int_equal(plan("NAME=\"Debian GNU/Linux\"\nVERSION_CODENAME=bookworm\nID=debian\n", false, &provision, NULL),
                     0);
    assert_string_equal(provision.backports, "bookworm-backports");
    assert_string_equal(provision.packages.items[0], "incus-base");
    assert_true(argv_contains(&provision.packages, "incus-client"));
}

static void newer_releases_have_it(void **state)
{
    CLEANUP(provision_reset) struct provision debian = {0};
    CLEANUP(provision_reset) struct provision ubuntu = {0};
    (void)state;
    assert_int_equal(plan("ID=debian\nVERSION_CODENAME=\"trixie\"", true, &debian, NULL), 0);
    assert_null(debian.backports);
    assert_string_equal(debian.packages.items[0], "incus");
    assert_int_equal(plan("ID=\"ubuntu\"\nID_LIKE=debian\nVERSION_CODENAME=noble\n", false, &ubuntu, NULL), 0);
    assert_null(ubuntu.backports);
}

static void another_distribution_is_told_what_it_needs(void **state)
{
    static const char *const others[] = {"ID=fedora\nVERSION_ID=41\n", "ID=ubuntu\nVERSION_CODENAME=jammy\n", ""};
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(others); i++) {
        CLEANUP(error_reset) struct error err = {0};
        struct provision provision = {0};
        assert_int_equal(plan(others[i], false, &provision, &err), -1);
        assert_int_equal(err.code, ERR_STATE);
        assert_non_null(strstr(err.remedy, "incus-base incus-client btrfs-progs"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(debian_12_needs_its_backports),
        cmocka_unit_test(newer_releases_have_it),
        cmocka_unit_test(another_distribution_is_told_what_it_needs),
    };
    return cmocka_run_group_tests_name("provision", tests, NULL, NULL);
}
