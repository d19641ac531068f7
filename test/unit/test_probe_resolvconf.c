/* Mirrors probe/resolvconf.c. */
#include "resolvconf.h"
#include "unit.h"

#include <string.h>

static void a_usual_file(void **state)
{
    struct resolvconf config;
    char text[ENDPOINT_TEXT];

    (void)state;
    resolvconf_read("# comment\nnameserver 127.0.0.53 # the stub\nnameserver fd00::1\noptions edns0 ndots:2 trust-ad\n"
                    "search first.example\nsearch a.example b.example\n",
                    &config);
    assert_int_equal(config.server_count, 2);
    assert_string_equal(endpoint_text(&config.servers[0], text), "127.0.0.53");
    assert_int_equal(config.servers[1].port, 53);
    assert_int_equal(config.search_count, 2);
    assert_string_equal(config.search[1], "b.example");
    assert_int_equal(config.ndots, 2);
}

static void what_is_strange_is_skipped(void **state)
{
    struct resolvconf config;
    char much[2048];

    (void)state;
    resolvconf_read("", &config);
    assert_int_equal(config.server_count, 0);
    assert_int_equal(config.ndots, 1);
    resolvconf_read("nameserver\nnameserver nonsense\nnameservers 1.1.1.1\n  nameserver\t1.1.1.1\r\nsearch", &config);
    assert_int_equal(config.server_count, 1);
    assert_int_equal(config.search_count, 0);
    memset(much, 'x', sizeof(much));
    memcpy(much, "search ", 7);
    much[sizeof(much) - 1] = '\0';
    resolvconf_read(much, &config);
    assert_int_equal(config.search_count, 0);
    resolvconf_read("nameserver 1.1.1.1\nnameserver 1.1.1.2\nnameserver 1.1.1.3\nnameserver 1.1.1.4\n"
                    "search a b c d e f g h\noptions ndots:99\n",
                    &config);
    assert_int_equal(config.server_count, RESOLVCONF_SERVERS);
    assert_int_equal(config.search_count, RESOLVCONF_SEARCH);
    assert_int_equal(config.ndots, 1);
}

static void hosts(void **state)
{
    static const char text[] =
        "127.0.0.1 localhost\n10.0.0.5\tname.example Name # other\n::1 localhost\nnonsense name\n";
    struct endpoint found[4];

    (void)state;
    assert_int_equal(resolvconf_hosts(text, "LOCALHOST", found, 4), 2);
    assert_int_equal(found[1].family, AF_INET6);
    assert_int_equal(resolvconf_hosts(text, "name", found, 4), 1);
    assert_int_equal(resolvconf_hosts(text, "other", found, 4), 0);
    assert_int_equal(resolvconf_hosts(text, "nam", found, 4), 0);
    assert_int_equal(resolvconf_hosts(text, "localhost", found, 1), 1);
    assert_int_equal(resolvconf_hosts("", "x", found, 4), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_usual_file),
        cmocka_unit_test(what_is_strange_is_skipped),
        cmocka_unit_test(hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
