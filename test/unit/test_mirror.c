/* Mirrors src/box/mirror.c: which Debian archive a machine's apt sources name. */
#include "base/fd.h"
#include "base/memory.h"
#include "box/mirror.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A directory like /etc/apt, and what it is expected to yield. */
struct tree {
    char path[64];
};

static int make_tree(void **state)
{
    struct tree *tree = xcalloc(1, sizeof(*tree));

    (void)snprintf(tree->path, sizeof(tree->path), "/tmp/test-mirror-XXXXXX");
    assert_non_null(mkdtemp(tree->path));
    CLEANUP(freep) char *parts = xasprintf("%s/sources.list.d", tree->path);

    assert_int_equal(mkdir(parts, 0700), 0);
    (void)unsetenv("BOX_MIRROR");
    *state = tree;
    return 0;
}

static const char *const names[] = {"sources.list", "sources.list.d/a.list", "sources.list.d/b.sources",
                                    "sources.list.d/c.sources", "mirrors", "sources.list.d"};

static int remove_tree(void **state)
{
    struct tree *tree = *state;

    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        CLEANUP(freep) char *path = xasprintf("%s/%s", tree->path, names[i]);

        if (unlink(path) < 0) {
            (void)rmdir(path);
        }
    }
    assert_int_equal(rmdir(tree->path), 0);
    (void)unsetenv("BOX_MIRROR");
    free(tree);
    return 0;
}

static void put(const struct tree *tree, const char *name, const char *text)
{
    CLEANUP(freep) char *path = xasprintf("%s/%s", tree->path, name);

    assert_int_equal(fd_write_file(path, text, strlen(text), 0644, NULL), 0);
}

static void expect(const struct tree *tree, const char *archive, const char *security)
{
    CLEANUP(mirror_reset) struct mirror mirror = {0};
    CLEANUP(error_reset) struct error err = {0};

    if (mirror_find(tree->path, &mirror, &err) < 0) {
        fail_msg("not found: %s", err.message);
    }
    assert_string_equal(mirror.archive, archive);
    if (security) {
        assert_string_equal(mirror.security, security);
    } else {
        assert_null(mirror.security);
    }
    assert_non_null(mirror.keyring);
}

static void expect_none(const struct tree *tree)
{
    CLEANUP(mirror_reset) struct mirror mirror = {0};
    CLEANUP(error_reset) struct error err = {0};

    assert_int_equal(mirror_find(tree->path, &mirror, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_non_null(strstr(err.remedy, "BOX_MIRROR"));
    assert_null(mirror.archive);
}

static void reads_lines(void **state)
{
    put(*state, "sources.list",
        "# deb http://old.example/debian bookworm main\n"
        "deb-src http://src.example/debian bookworm main\n"
        "deb http://one.example/debian/ bookworm main contrib # the archive\n"
        "deb http://one.example/debian bookworm-updates main\n"
        "deb [arch=amd64] http://one.example/debian-security bookworm-security main\n");
    expect(*state, "http://one.example/debian", "http://one.example/debian-security");
}

static void reads_stanzas(void **state)
{
    put(*state, "sources.list.d/b.sources",
        "# a comment\n"
        "Types: deb deb-src\n"
        "# between fields\n"
        "uris: https://two.example/debian\n"
        "Suites: trixie\n"
        "# between lines of one\n"
        " trixie-updates\n"
        "Components: main\n"
        " non-free-firmware\n"
        "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
        "\n"
        "Types: deb\n"
        "URIs: https://two.example/security\n"
        "Suites: trixie-security\n"
        "Components: main\n");
    expect(*state, "https://two.example/debian", "https://two.example/security");
}

static void a_third_partys_archive_of_the_same_suite_is_none(void **state)
{
    put(*state, "sources.list.d/a.list",
        "deb [signed-by=/etc/apt/keyrings/other.gpg arch=amd64] https://other.example bookworm main\n"
        "deb https://third.example/apt bookworm stable\n");
    put(*state, "sources.list.d/b.sources",
        "Types: deb\nURIs: http://one.example/debian\nSuites: bookworm\nComponents: main\n"
        "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n");
    expect(*state, "http://one.example/debian", NULL);
}

static void what_is_switched_off_or_of_another_kind_does_not_count(void **state)
{
    put(*state, "sources.list.d/b.sources",
        "Types: deb\nURIs: http://one.example/debian\nSuites: bookworm\nComponents: main\nEnabled: no\n");
    put(*state, "sources.list.d/c.sources", "Types: deb-src\nURIs: http://two.example/debian\nSuites: sid\nComponents: main\n");
    put(*state, "sources.list",
        "deb cdrom:[Debian]/ bookworm main\n"
        "deb file:/srv/debian bookworm main\n"
        "deb http://archive.example/ubuntu noble main\n"
        "deb http://one.example/debian bookworm-backports main\n"
        "deb\n"
        "debx http://one.example/debian bookworm main\n"
        "deb [unclosed http://one.example/debian bookworm main\n");
    expect_none(*state);
}

static void follows_a_file_of_mirrors(void **state)
{
    const struct tree *tree = *state;
    CLEANUP(freep) char *line = xasprintf("deb mirror+file:%s/mirrors bookworm main\n", tree->path);

    put(tree, "mirrors", "# mirrors\nhttp://three.example/debian\nhttp://four.example/debian\n");
    put(tree, "sources.list", line);
    expect(tree, "http://three.example/debian", NULL);
}

static void the_environment_helps_where_there_is_none(void **state)
{
    expect_none(*state);
    assert_int_equal(setenv("BOX_MIRROR", "http://env.example/debian http://env.example/security", 1), 0);
    expect(*state, "http://env.example/debian", "http://env.example/security");
}

static void the_machines_own_is_built_from_and_the_environments_is_what_boxes_use(void **state)
{
    CLEANUP(mirror_reset) struct mirror machine = {0};
    CLEANUP(mirror_reset) struct mirror boxes = {0};

    put(*state, "sources.list", "deb http://one.example/debian bookworm main\n");
    assert_int_equal(setenv("BOX_MIRROR", "http://env.example/debian", 1), 0);
    expect(*state, "http://one.example/debian", NULL);
    assert_int_equal(mirror_find(((struct tree *)*state)->path, &machine, NULL), 0);
    assert_int_equal(mirror_for_boxes(&machine, &boxes, NULL), 0);
    assert_string_equal(boxes.archive, "http://env.example/debian");
    assert_null(boxes.security);
}

static void a_bad_environment_is_an_error(void **state)
{
    static const char *const bad[] = {"ftp://x.example/debian", "x.example", " ", "http://a http://b http://c"};

    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        CLEANUP(mirror_reset) struct mirror mirror = {0};
        CLEANUP(error_reset) struct error err = {0};

        assert_int_equal(setenv("BOX_MIRROR", bad[i], 1), 0);
        assert_int_equal(mirror_find(((struct tree *)*state)->path, &mirror, &err), -1);
        assert_int_equal(err.code, ERR_USAGE);
        assert_non_null(strstr(err.message, "BOX_MIRROR"));
    }
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, make_tree, remove_tree)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(reads_lines),
        CASE(reads_stanzas),
        CASE(a_third_partys_archive_of_the_same_suite_is_none),
        CASE(what_is_switched_off_or_of_another_kind_does_not_count),
        CASE(follows_a_file_of_mirrors),
        CASE(the_environment_helps_where_there_is_none),
        CASE(the_machines_own_is_built_from_and_the_environments_is_what_boxes_use),
        CASE(a_bad_environment_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
