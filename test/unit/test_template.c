/* Mirrors src/box/template.c. */
#include "base/fd.h"
#include "base/memory.h"
#include "box/template.h"
#include "box/templatefile.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SOUND "BOX_IMAGE=\"debian/13\"\nBOX_USER=\"dev\"\n"
#define DATA  "#cloud-config\nusers: []\n"

/* A directory with places for templates: user's (XDG_CONFIG_HOME), shipped (BOX_TEMPLATES), given. */
static char *root;

static char *under(const char *path)
{
    return xasprintf("%s/%s", root, path);
}

static int make_root(void **state)
{
    char pattern[] = "/tmp/box-template-XXXXXX";

    if (!mkdtemp(pattern)) {
        return -1;
    }
    root = xstrdup(pattern);
    CLEANUP(freep) char *shipped = under("shipped");
    CLEANUP(freep) char *given = under("given");
    CLEANUP(freep) char *user = under("config/box/templates");
    return setenv("XDG_CONFIG_HOME", pattern, 1) | setenv("BOX_TEMPLATES", shipped, 1) |
           fd_make_directories(shipped, 0755, NULL) | fd_make_directories(given, 0755, NULL) |
           fd_make_directories(user, 0755, NULL);
}

static int remove_root(void **state)
{
    CLEANUP(freep) char *doomed = steal(&root);
    const char *const argv[] = {"rm", "-rf", doomed, NULL};
    pid_t pid = fork();
    int status = 0;

    if (pid == 0) {
        execvp(argv[0], (char *const *)argv);
        _exit(127);
    }
    return waitpid(pid, &status, 0) == pid && status == 0 ? 0 : -1;
}

static void put(const char *path, const void *data, size_t length)
{
    CLEANUP(freep) char *full = under(path);
    CLEANUP(freep) char *directory = xstrdup(full);

    *strrchr(directory, '/') = '\0';
    assert_int_equal(fd_make_directories(directory, 0755, NULL), 0);
    assert_int_equal(fd_write_file(full, data, length, 0644, NULL), 0);
}

static void put_template(const char *place, const char *env, const char *data)
{
    CLEANUP(freep) char *env_path = xasprintf("%s/box.env", place);
    CLEANUP(freep) char *data_path = xasprintf("%s/user-data.yaml", place);

    put(env_path, env, strlen(env));
    put(data_path, data, strlen(data));
}

/* One error of the given words. */
static void assert_refused(const char *place, const char *says)
{
    CLEANUP(freep) char *directory = under(place);
    CLEANUP(error_reset) struct error err = {0};
    struct template template = {0};

    assert_int_equal(template_read("t", directory, &template, &err), -1);
    assert_int_equal(err.code, ERR_USAGE);
    if (!strstr(err.message, says)) {
        fail_msg("'%s' does not say '%s'", err.message, says);
    }
    assert_null(template.name);
}

static int parse(const char *text, struct template *template, struct error *err)
{
    return template_parse("F", text, strlen(text), template, err);
}

static void reads_all_keys(void **state)
{
    CLEANUP(template_reset) struct template template = {0};

    assert_int_equal(parse("BOX_DESCRIPTION=\"a $HOME b\"\nBOX_IMAGE=\"debian/13\"\nBOX_USER=\"me\"\nBOX_CPU=\"4\"\n"
                           "BOX_MEMORY=\"4GiB\"\nBOX_DISK=\"20GB\"\nBOX_REQUIRE_VM=\"true\"\nBOX_AUTOSTART=\"false\"\n"
                           "BOX_LOGIN=\"run me \xc3\xa4\"\n",
                           &template, NULL),
                     0);
    assert_string_equal(template.description, "a $HOME b");
    assert_string_equal(template.image, "debian/13");
    assert_string_equal(template.user, "me");
    assert_string_equal(template.limits.cpu, "4");
    assert_string_equal(template.limits.memory, "4GiB");
    assert_string_equal(template.limits.disk, "20GB");
    assert_string_equal(template.login, "run me \xc3\xa4");
    assert_true(template.require_vm);
    assert_false(template.autostart);
}

static void has_defaults(void **state)
{
    CLEANUP(template_reset) struct template template = {0};

    assert_int_equal(parse("# nothing\n", &template, NULL), 0);
    assert_string_equal(template.image, TEMPLATE_DEFAULT_IMAGE);
    assert_string_equal(template.user, TEMPLATE_DEFAULT_USER);
    assert_string_equal(template.description, "");
    assert_string_equal(template.login, "");
    assert_null(template.limits.cpu);
    assert_false(template.require_vm);
    assert_false(template.autostart);
}

static void refuses_with_the_line(void **state)
{
    static const char *const rows[][2] = {
        {"BOX_NETWORK=\"lan\"\n", "F:1: unknown key BOX_NETWORK"},
        {"\nBOX_PRIVILEGED=\"true\"\n", "F:2: unknown key BOX_PRIVILEGED"},
        {"BOX_CPUS=\"2\"\n", "did you mean BOX_CPU?"},
        {"PATH=\"/\"\n", "F:1: unknown key PATH"},
        {"BOX_CPU=\"2\"\n\nBOX_CPU=\"2\"\n", "F:3: BOX_CPU is there twice"},
        {"BOX_CPU=\"many\"\n", "F:1: BOX_CPU"},
        {"BOX_CPU=\"\"\n", "F:1: BOX_CPU"},
        {"BOX_MEMORY=\"4\"\n", "F:1: BOX_MEMORY"},
        {"BOX_DISK=\"1MiB\"\n", "F:1: BOX_DISK"},
        {"BOX_USER=\"Dev\"\n", "F:1: BOX_USER"},
        {"BOX_USER=\"\"\n", "F:1: BOX_USER"},
        {"BOX_IMAGE=\"\"\n", "F:1: BOX_IMAGE"},
        {"BOX_IMAGE=\"debian 13\"\n", "F:1: BOX_IMAGE"},
        {"BOX_REQUIRE_VM=\"yes\"\n", "F:1: BOX_REQUIRE_VM"},
        {"BOX_AUTOSTART=\"\"\n", "F:1: BOX_AUTOSTART"},
        {"BOX_LOGIN=\"\xc2\x9b" "2J\"\n", "F:1: BOX_LOGIN"},
        {"BOX_IMAGE=\"a\"\r\nBOX_NETWORK=\"x\"\r\n", "F:1: a carriage return"},
        {"BOX_IMAGE=a\n", "F:1: expected KEY=\"value\""},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        CLEANUP(error_reset) struct error err = {0};
        struct template template = {0};
        assert_int_equal(parse(rows[i][0], &template, &err), -1);
        assert_int_equal(err.code, ERR_USAGE);
        if (!strstr(err.message, rows[i][1]) || strchr(err.message, '\r')) {
            fail_msg("'%s' does not say '%s'", err.message, rows[i][1]);
        }
    }
}

static void hands_user_data_on_byte_for_byte(void **state)
{
    static const char data[] = "#cloud-config\r\n\t# \xc3\xa4 \xe2\x80\xa8 'x': \"y\"\n\n";
    CLEANUP(freep) char *directory = under("given/a");
    CLEANUP(template_reset) struct template template = {0};

    put_template("given/a", SOUND, data);
    assert_int_equal(template_read("a", directory, &template, NULL), 0);
    assert_int_equal(template.user_data_length, strlen(data));
    assert_string_equal(template.user_data, data);
    assert_string_equal(template.name, "a");
    assert_string_equal(template.directory, directory);
}

static void takes_a_mebibyte_and_not_one_byte_more(void **state)
{
    CLEANUP(freep) char *directory = under("given/a");
    CLEANUP(freep) char *data = xmalloc(TEMPLATEFILE_CEILING + 1);
    CLEANUP(template_reset) struct template template = {0};

    memset(data, '#', TEMPLATEFILE_CEILING + 1);
    put("given/a/box.env", SOUND, strlen(SOUND));
    put("given/a/user-data.yaml", data, TEMPLATEFILE_CEILING);
    assert_int_equal(template_read("a", directory, &template, NULL), 0);
    assert_int_equal(template.user_data_length, TEMPLATEFILE_CEILING);
    put("given/a/user-data.yaml", data, TEMPLATEFILE_CEILING + 1);
    assert_refused("given/a", "user-data.yaml: larger than 1 MiB");
}

static void tells_what_is_there_instead_of_a_file(void **state)
{
    CLEANUP(freep) char *data = under("given/a/user-data.yaml");
    CLEANUP(freep) char *env = under("given/a/box.env");

    put("given/a/box.env", SOUND, strlen(SOUND));
    assert_refused("given/a", "user-data.yaml: there is no such file");
    assert_int_equal(mkfifo(data, 0644), 0);
    assert_refused("given/a", "user-data.yaml: a FIFO, not a file");
    assert_int_equal(unlink(data) | mkdir(data, 0755), 0);
    assert_refused("given/a", "user-data.yaml: a directory, not a file");
    assert_int_equal(rmdir(data) | symlink("nowhere", data), 0);
    assert_refused("given/a", "user-data.yaml: a symbolic link, which could lead any file of this host");
    assert_int_equal(unlink(data) | symlink("user-data.yaml", data), 0);
    assert_refused("given/a", "user-data.yaml: a symbolic link, which could lead any file of this host");
    assert_int_equal(unlink(data) | symlink("/dev/zero", data), 0);
    assert_refused("given/a", "user-data.yaml: a symbolic link");
    assert_int_equal(unlink(env) | mkfifo(env, 0644), 0);
    assert_refused("given/a", "box.env: a FIFO, not a file");
}

static void tells_bytes_that_cannot_be_handed_on(void **state)
{
    put("given/a/box.env", SOUND, strlen(SOUND));
    put("given/a/user-data.yaml", "\x1f\x8b\x08\x00", 4);
    assert_refused("given/a", "user-data.yaml: compressed with gzip");
    put("given/a/user-data.yaml", "a: \0\n", 5);
    assert_refused("given/a", "user-data.yaml: a NUL byte");
    put("given/a/user-data.yaml", "a: \xff\n", 5);
    assert_refused("given/a", "user-data.yaml: bytes that are not UTF-8");
}

static void digests_the_files(void **state)
{
    static const char *const rows[][2] = {{SOUND, DATA}, {SOUND "#\n", DATA}, {SOUND, DATA "\n"}, {SOUND "\n", DATA}};
    char seen[ARRAY_LENGTH(rows)][SHA256_HEX_SIZE];

    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        CLEANUP(freep) char *directory = under("given/a");
        CLEANUP(template_reset) struct template template = {0};
        put_template("given/a", rows[i][0], rows[i][1]);
        assert_int_equal(template_read("a", directory, &template, NULL), 0);
        assert_int_equal(strlen(template.digest), 64);
        memcpy(seen[i], template.digest, sizeof(seen[i]));
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(seen[i], seen[j]);
        }
    }
}

static void digests_the_script_too(void **state)
{
    CLEANUP(freep) char *directory = under("given/a");
    char seen[3][SHA256_HEX_SIZE];

    put_template("given/a", SOUND, DATA);
    for (size_t i = 0; i < ARRAY_LENGTH(seen); i++) {
        CLEANUP(template_reset) struct template template = {0};
        if (i > 0) {
            put("given/a/converge.sh", i == 1 ? "#!/bin/sh\n" : "#!/bin/sh\n#", i == 1 ? 10 : 11);
        }
        assert_int_equal(template_read("a", directory, &template, NULL), 0);
        assert_int_equal(template.script_length, i == 0 ? 0 : 9 + i);
        memcpy(seen[i], template.digest, sizeof(seen[i]));
    }
    assert_string_not_equal(seen[0], seen[1]);
    assert_string_not_equal(seen[1], seen[2]);
}

static void finds_the_first_of_the_places(void **state)
{
    static const struct {
        const char *place, *description;
    } places[] = {{"shipped/t", "s"}, {"config/box/templates/t", "u"}, {"given/t", "g"}};
    CLEANUP(freep) char *config = under("config");
    CLEANUP(freep) char *given = under("given");

    assert_int_equal(setenv("XDG_CONFIG_HOME", config, 1), 0);
    for (size_t i = 0; i < ARRAY_LENGTH(places); i++) {
        CLEANUP(freep) char *env = xasprintf(SOUND "BOX_DESCRIPTION=\"%s\"\n", places[i].description);
        CLEANUP(template_reset) struct template template = {0};
        put_template(places[i].place, env, DATA);
        assert_int_equal(template_find("t", given, &template, NULL), 0);
        assert_string_equal(template.description, places[i].description);
    }
    CLEANUP(template_reset) struct template template = {0};
    assert_int_equal(template_find("t", NULL, &template, NULL), 0);
    assert_string_equal(template.description, "u");
}

static void looks_in_home_where_xdg_says_nothing(void **state)
{
    const char *const ignored[] = {"", "relative"};

    put_template("home/.config/box/templates/t", SOUND, DATA);
    CLEANUP(freep) char *home = under("home");
    assert_int_equal(setenv("HOME", home, 1), 0);
    for (size_t i = 0; i < ARRAY_LENGTH(ignored); i++) {
        CLEANUP(template_reset) struct template template = {0};
        assert_int_equal(setenv("XDG_CONFIG_HOME", ignored[i], 1), 0);
        assert_int_equal(template_find("t", NULL, &template, NULL), 0);
        assert_non_null(strstr(template.directory, "home/.config"));
    }
}

static void refuses_names_and_places_that_are_none(void **state)
{
    CLEANUP(error_reset) struct error err = {0};
    CLEANUP(freep) char *nowhere = under("nowhere");
    CLEANUP(freep) char *given = under("given");
    CLEANUP(freep) char *link = under("given/loose");
    struct template template = {0};

    put_template("shipped/known", SOUND, DATA);
    put("given/file", "x", 1);
    assert_int_equal(symlink("gone", link), 0);
    assert_int_equal(template_find("../shipped/known", NULL, &template, &err), -1);
    assert_int_equal(err.code, ERR_USAGE);
    assert_int_equal(template_find("known", nowhere, &template, &err), -1);
    assert_int_equal(err.code, ERR_USAGE);
    assert_int_equal(template_find("absent", given, &template, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_non_null(strstr(err.message, "known"));
    assert_int_equal(template_find("file", given, &template, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_int_equal(template_find("loose", given, &template, &err), -1);
    assert_int_equal(err.code, ERR_USAGE);
    assert_non_null(strstr(err.message, "leads nowhere"));
}

static void lists_all_with_their_faults(void **state)
{
    CLEANUP(freep) char *config = under("config");
    struct template_row *rows = NULL;
    size_t count = 0;

    assert_int_equal(setenv("XDG_CONFIG_HOME", config, 1), 0);
    put_template("shipped/blank", SOUND, DATA);
    put_template("config/box/templates/blank", SOUND, DATA);
    put_template("config/box/templates/broken", "BOX_NETWORK=\"lan\"\n", DATA);
    put("config/box/templates/README", "x", 1);
    template_list(NULL, &rows, &count);
    assert_int_equal(count, 3);
    assert_string_equal(rows[0].name, "blank");
    assert_false(rows[0].hidden);
    assert_null(rows[0].fault);
    assert_non_null(strstr(rows[0].directory, "config"));
    assert_string_equal(rows[1].name, "blank");
    assert_true(rows[1].hidden);
    assert_string_equal(rows[2].name, "broken");
    assert_non_null(strstr(rows[2].fault, "box.env:1: unknown key BOX_NETWORK"));
    template_list_free(rows, count);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_all_keys),
        cmocka_unit_test(has_defaults),
        cmocka_unit_test(refuses_with_the_line),
        TEST(hands_user_data_on_byte_for_byte),
        TEST(takes_a_mebibyte_and_not_one_byte_more),
        TEST(tells_what_is_there_instead_of_a_file),
        TEST(tells_bytes_that_cannot_be_handed_on),
        TEST(digests_the_files),
        TEST(digests_the_script_too),
        TEST(finds_the_first_of_the_places),
        TEST(looks_in_home_where_xdg_says_nothing),
        TEST(refuses_names_and_places_that_are_none),
        TEST(lists_all_with_their_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
