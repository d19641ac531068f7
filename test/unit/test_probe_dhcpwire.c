/* Mirrors probe/dhcpwire.c. */
#include "dhcpwire.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

static void what_was_written_is_read_again(void **state)
{
    struct dhcpwire message = {
        .reply = true,
        .type = DHCPWIRE_OFFER,
        .transaction = 0xdeadbeef,
        .broadcast = true,
        .mac = {2, 0, 0, 0, 0, 9},
        .yours = {10, 88, 0, 7},
        .has_server = true,
        .server = {10, 88, 0, 1},
        .has_router = true,
        .router = {10, 88, 0, 1},
        .name_servers = {{1, 1, 1, 1}, {8, 8, 8, 8}},
        .name_server_count = 2,
        .lease_seconds = 3600,
        .client_id = {0, 'x', 'y'},
        .client_id_size = 3,
        .host_name = "wpad",
        .domain = "example",
    };
    uint8_t bytes[DHCPWIRE_MESSAGE];
    struct dhcpwire out;

    (void)state;
    size_t size = dhcpwire_write(&message, bytes);
    assert_true(size >= 300 && size <= DHCPWIRE_MESSAGE);
    assert_true(dhcpwire_read(bytes, size, &out));
    assert_true(out.reply);
    assert_int_equal(out.type, DHCPWIRE_OFFER);
    assert_int_equal(out.transaction, 0xdeadbeef);
    assert_memory_equal(out.mac, message.mac, 6);
    assert_memory_equal(out.yours, message.yours, 4);
    assert_memory_equal(out.server, message.server, 4);
    assert_int_equal(out.name_server_count, 2);
    assert_memory_equal(out.name_servers[1], message.name_servers[1], 4);
    assert_int_equal(out.lease_seconds, 3600);
    assert_int_equal(out.client_id_size, 3);
    assert_string_equal(out.host_name, "wpad");
    assert_string_equal(out.domain, "example");
    assert_false(out.has_requested);
}

static void a_message_never_passes_its_ceiling(void **state)
{
    struct dhcpwire message = {.type = DHCPWIRE_DISCOVER, .client_id_size = DHCPWIRE_CLIENT_ID};
    uint8_t bytes[DHCPWIRE_MESSAGE];

    (void)state;
    memset(message.host_name, 'h', DHCPWIRE_TEXT - 1);
    memset(message.domain, 'd', DHCPWIRE_TEXT - 1);
    size_t size = dhcpwire_write(&message, bytes);
    assert_true(size <= DHCPWIRE_MESSAGE);
    assert_int_equal(bytes[size - 1], 255);
}

static void what_is_no_message_is_refused(void **state)
{
    uint8_t bytes[300] = {2};
    struct dhcpwire out = {.type = 99};

    (void)state;
    assert_false(dhcpwire_read(bytes, sizeof(bytes), &out));
    assert_false(dhcpwire_read(bytes, 0, &out));
    assert_int_equal(out.type, 99);
}

/* Options whose length runs past the end, in memory of exactly the size. */
static void lying_lengths_end_the_reading(void **state)
{
    static const uint8_t cookie[] = {0x63, 0x82, 0x53, 0x63};
    static const uint8_t options[][6] = {
        {53, 1, 2, 12, 200, 'x'}, {53, 1, 2, 12}, {53, 1, 2, 0, 0, 12}, {53, 1, 2, 51, 1, 1}};
    static const size_t sizes[] = {6, 4, 6, 6};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        uint8_t *bytes = calloc(1, 240 + sizes[i]);
        struct dhcpwire out;
        assert_non_null(bytes);
        memcpy(bytes + 236, cookie, 4);
        memcpy(bytes + 240, options[i], sizes[i]);
        assert_true(dhcpwire_read(bytes, 240 + sizes[i], &out));
        assert_int_equal(out.type, DHCPWIRE_OFFER);
        assert_string_equal(out.host_name, "");
        assert_int_equal(out.lease_seconds, 0);
        free(bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read_again),
        cmocka_unit_test(a_message_never_passes_its_ceiling),
        cmocka_unit_test(what_is_no_message_is_refused),
        cmocka_unit_test(lying_lengths_end_the_reading),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
