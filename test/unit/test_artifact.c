/* Mirrors src/box/artifact.c: which members and which index an exported box may have. */
#include "base/text.h"
#include "box/artifact.h"
#include "unit.h"

#include <string.h>

#define ROOT "backup/container/rootfs/"

static bool allows(const char *path, enum artifact_kind kind, const char *link)
{
    const char *why = NULL;
    bool allowed = artifact_allows(path, kind, link, 0, 1, &why);

    assert_int_equal(allowed, why == NULL);
    return allowed;
}

static void takes_what_an_export_has(void **state)
{
    assert_true(allows("backup/index.yaml", ARTIFACT_FILE, NULL));
    assert_true(allows("backup/container", ARTIFACT_DIRECTORY, NULL));
    assert_true(allows("backup/container/backup.yaml", ARTIFACT_FILE, NULL));
    assert_true(allows("backup/container/templates/hostname.tpl", ARTIFACT_FILE, NULL));
    assert_true(allows("backup/container/rootfs", ARTIFACT_DIRECTORY, NULL));
    assert_true(allows(ROOT "bin", ARTIFACT_SYMLINK, "usr/bin"));
    assert_true(allows(ROOT "etc/x", ARTIFACT_SYMLINK, "/absolute/../within/the/guest"));
    assert_true(allows(ROOT "a", ARTIFACT_HARDLINK, ROOT "b/c"));
    assert_true(allows(ROOT "run/fifo", ARTIFACT_FIFO, NULL));
    assert_true(allows("backup/snapshots/one/rootfs/a", ARTIFACT_HARDLINK, "backup/snapshots/one/rootfs/b"));
    assert_true(allows("backup/virtual-machine.img", ARTIFACT_FILE, NULL));
}

static void refuses_paths_out_of_their_place(void **state)
{
    static const char *const paths[] = {"",          "/",          "/etc/passwd", "etc/passwd",      "backup/../x",
                                        "backup//x", "backup/./x", "../backup/x", ROOT "../../../x", ROOT "a/..",
                                        "backups/x"};

    for (size_t i = 0; i < ARRAY_LENGTH(paths); i++) {
        assert_false(allows(paths[i], ARTIFACT_FILE, NULL));
    }
}

static void refuses_links_that_lead_out(void **state)
{
    assert_false(allows("backup/container", ARTIFACT_SYMLINK, "/etc"));
    assert_false(allows("backup/container/rootfs", ARTIFACT_SYMLINK, "/"));
    assert_false(allows("backup/container/metadata.yaml", ARTIFACT_SYMLINK, "/etc/shadow"));
    assert_false(allows(ROOT "a", ARTIFACT_HARDLINK, "/etc/shadow"));
    assert_false(allows(ROOT "a", ARTIFACT_HARDLINK, NULL));
    assert_false(allows(ROOT "a", ARTIFACT_HARDLINK, ROOT "../../../etc/shadow"));
    assert_false(allows(ROOT "a", ARTIFACT_HARDLINK, "backup/container/backup.yaml"));
    assert_false(allows(ROOT "a", ARTIFACT_HARDLINK, "backup/snapshots/one/rootfs/a"));
    assert_false(allows("backup/snapshots/one/rootfs/a", ARTIFACT_HARDLINK, "backup/snapshots/two/rootfs/a"));
    assert_false(allows("backup/container/backup.yaml", ARTIFACT_HARDLINK, ROOT "a"));
}

static void refuses_devices_of_the_host(void **state)
{
    static const struct {
        enum artifact_kind kind;
        unsigned major, minor;
        bool allowed;
    } rows[] = {
        {ARTIFACT_CHARACTER_DEVICE, 1, 3, true},  {ARTIFACT_CHARACTER_DEVICE, 0, 0, true},
        {ARTIFACT_CHARACTER_DEVICE, 5, 1, true},  {ARTIFACT_CHARACTER_DEVICE, 1, 1, false},
        {ARTIFACT_CHARACTER_DEVICE, 1, 2, false}, {ARTIFACT_CHARACTER_DEVICE, 10, 229, false},
        {ARTIFACT_BLOCK_DEVICE, 8, 0, false},     {ARTIFACT_BLOCK_DEVICE, 0, 0, false},
    };
    const char *why;

    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        assert_int_equal(artifact_allows(ROOT "dev/x", rows[i].kind, NULL, rows[i].major, rows[i].minor, &why),
                         rows[i].allowed);
    }
    assert_false(artifact_allows("backup/container/null", ARTIFACT_CHARACTER_DEVICE, NULL, 1, 3, &why));
}

static int read_index(const char *text, struct artifact *artifact)
{
    CLEANUP(error_reset) struct error err = {0};
    int result = artifact_read_index(text, strlen(text), artifact, &err);

    assert_int_equal(result < 0, err.code != ERR_NONE);
    return result;
}

static void reads_an_index(void **state)
{
    CLEANUP(artifact_reset) struct artifact artifact = {0};

    assert_int_equal(read_index("name: work-1\nbackend: btrfs\ntype: container\noptimized: false\n", &artifact), 0);
    assert_string_equal(artifact.name, "work-1");
    assert_false(artifact.vm);
}

static void refuses_an_index_that_is_none(void **state)
{
    static const char *const texts[] = {"",
                                        "name: a\n",
                                        "type: container\n",
                                        "name: a\ntype: disk\n",
                                        "name: ../a\ntype: container\n",
                                        "name: \"a b\"\ntype: container\n",
                                        "  name: a\n  type: container\n",
                                        "name: a\ntype: container\noptimized: true\n",
                                        "name: a\ntype: container\noptimized: \"yes\"\n"};

    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
        struct artifact artifact = {0};

        assert_int_equal(read_index(texts[i], &artifact), -1);
        assert_null(artifact.name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_what_an_export_has),
        cmocka_unit_test(refuses_paths_out_of_their_place),
        cmocka_unit_test(refuses_links_that_lead_out),
        cmocka_unit_test(refuses_devices_of_the_host),
        cmocka_unit_test(reads_an_index),
        cmocka_unit_test(refuses_an_index_that_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
