/* Mirrors probe/dnswire.c and probe/dnsnames.c. */
#include "dnswire.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

/* A reply to "a.example IN A" with one answer whose name points back to the question. */
static const uint8_t reply_bytes[] = {
    0x12, 0x34, 0x81, 0x80, 0,   1,   0,   1,   0,   0,   0, 0,               /* header */
    1,    'a',  7,    'e',  'x', 'a', 'm', 'p', 'l', 'e', 0, 0, 1,   0, 1,    /* question */
    0xc0, 12,   0,    1,    0,   1,   0,   0,   0,   60,  0, 4, 192, 0, 2, 7, /* answer */
};

static const struct dnswire_query query = {.id = 0x1234, .name = "a.example", .type = 1, .class = 1};

static void a_query_is_as_the_rfc_wants_it(void **state)
{
    static const uint8_t expected[] = {0x12, 0x34, 0x01, 0x00, 0,   1,   0,   0,   0, 0, 0, 0, 1, 'a',
                                       7,    'e',  'x',  'a',  'm', 'p', 'l', 'e', 0, 0, 1, 0, 1};
    uint8_t bytes[DNSWIRE_QUERY];
    size_t size = 0;

    (void)state;
    assert_true(dnswire_write_query(&query, bytes, &size));
    assert_int_equal(size, sizeof(expected));
    assert_memory_equal(bytes, expected, size);

    struct dnswire_query root = {.name = ".", .type = 2, .class = 1, .no_recursion = true, .edns = true};
    assert_true(dnswire_write_query(&root, bytes, &size));
    assert_int_equal(size, 12 + 1 + 4 + 11);
    assert_int_equal(bytes[2], 0);
}

static void names_that_are_none_are_refused(void **state)
{
    char label[70];
    char longest[300];
    const char *const bad[] = {"", "a..b", ".a", label, longest, "a\\25", "a\\999", "a\\"};
    uint8_t bytes[DNSWIRE_QUERY];
    size_t size = 77;

    (void)state;
    memset(label, 'x', 64);
    label[64] = '\0';
    for (size_t i = 0; i < 298; i++) {
        longest[i] = i % 2 ? '.' : 'x';
    }
    longest[298] = '\0';
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct dnswire_query asked = {.name = bad[i], .type = 1, .class = 1};
        assert_false(dnswire_write_query(&asked, bytes, &size));
        assert_int_equal(size, 77);
    }
    longest[253] = '\0';
    struct dnswire_query asked = {.name = longest, .type = 1, .class = 1, .edns = true};
    assert_true(dnswire_write_query(&asked, bytes, &size));
    assert_int_equal(size, 12 + 255 + 4 + 11);
    label[63] = '\0';
    asked.name = label;
    assert_true(dnswire_write_query(&asked, bytes, &size));
}

static void a_reply_is_read(void **state)
{
    struct dnswire_reply reply;

    (void)state;
    assert_null(dnswire_read_reply(reply_bytes, sizeof(reply_bytes), &reply));
    assert_true(reply.response);
    assert_true(reply.recursion_available);
    assert_int_equal(reply.rcode, 0);
    assert_int_equal(reply.record_count, 1);
    assert_string_equal(reply.records[0].name, "a.example");
    assert_string_equal(reply.records[0].data, "192.0.2.7");
    assert_int_equal(reply.records[0].ttl, 60);
    assert_true(dnswire_answers(&query, &reply));
}

static void an_answer_to_another_question_is_none(void **state)
{
    struct dnswire_query other = query;
    struct dnswire_reply reply;

    (void)state;
    assert_null(dnswire_read_reply(reply_bytes, sizeof(reply_bytes), &reply));
    other.id = 0x1235;
    assert_false(dnswire_answers(&other, &reply));
    other = query;
    other.name = "b.example";
    assert_false(dnswire_answers(&other, &reply));
    other.name = "A.EXAMPLE.";
    assert_true(dnswire_answers(&other, &reply));
    other = query;
    other.type = 28;
    assert_false(dnswire_answers(&other, &reply));
    reply.response = false;
    assert_false(dnswire_answers(&query, &reply));
}

static void read_with(const uint8_t *bytes, size_t size, const char *expected)
{
    /* In memory of exactly its size, for the sanitizers. */
    uint8_t *copy = malloc(size ? size : 1);
    struct dnswire_reply reply;

    assert_non_null(copy);
    memcpy(copy, bytes, size);
    const char *wrong = dnswire_read_reply(copy, size, &reply);
    free(copy);
    if (expected) {
        assert_non_null(wrong);
        assert_string_equal(wrong, expected);
    }
}

static void every_cut_is_refused(void **state)
{
    struct dnswire_reply reply;

    (void)state;
    for (size_t size = 0; size < sizeof(reply_bytes); size++) {
        read_with(reply_bytes, size, NULL);
        assert_non_null(dnswire_read_reply(reply_bytes, size, &reply));
    }
    /* With the TC bit what came before the cut stands. */
    uint8_t truncated[sizeof(reply_bytes)];
    memcpy(truncated, reply_bytes, sizeof(truncated));
    truncated[2] |= 2;
    assert_null(dnswire_read_reply(truncated, sizeof(truncated) - 3, &reply));
    assert_true(reply.truncated);
    assert_int_equal(reply.record_count, 0);
}

static void pointers_lead_back_or_nowhere(void **state)
{
    uint8_t bytes[sizeof(reply_bytes)];

    (void)state;
    memcpy(bytes, reply_bytes, sizeof(bytes));
    bytes[28] = 27; /* to itself */
    read_with(bytes, sizeof(bytes), "a name's pointer does not lead back");
    bytes[28] = 40; /* forward */
    read_with(bytes, sizeof(bytes), "a name's pointer does not lead back");
    bytes[27] = 0xff;
    bytes[28] = 0xff; /* past the end */
    read_with(bytes, sizeof(bytes), "a name's pointer does not lead back");
    bytes[27] = 0x80;
    read_with(bytes, sizeof(bytes), "a label of an unknown kind");

    /* A question that is a label and then a pointer to that label: a loop of two steps. */
    static const uint8_t loop[] = {0, 0, 0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 'a', 0xc0, 12, 0, 1, 0, 1};
    read_with(loop, sizeof(loop), "a name's pointer does not lead back");
}

/* Pointers that each lead back, but over labels that add up to more than a name may have: the links lie in the data of
 * an unknown type, and the second record's name is the last of them. */
static void a_name_cannot_grow_by_pointers(void **state)
{
    enum { LINKS = 5, LINK = 66, DATA = 23 };
    uint8_t bytes[DATA + LINKS * LINK + 12] = {0, 0, 0x80, 0, 0, 0, 0, 2};
    struct dnswire_reply reply;
    size_t at = DATA;

    (void)state;
    bytes[13] = 0xff; /* type, after the root's name at 12 */
    bytes[21] = (uint8_t)(LINKS * LINK >> 8);
    bytes[22] = (uint8_t)(LINKS * LINK);
    for (size_t i = 0; i < LINKS; i++) {
        bytes[at] = 63;
        memset(bytes + at + 1, 'x', 63);
        size_t target = i ? at - LINK : 12;
        bytes[at + 64] = 0xc0 | (uint8_t)(target >> 8);
        bytes[at + 65] = (uint8_t)target;
        at += LINK;
    }
    /* Three links are 193 bytes and a name; four are 257 and none. */
    for (size_t links = 3; links <= LINKS; links++) {
        size_t target = DATA + (links - 1) * LINK;
        bytes[at] = 0xc0 | (uint8_t)(target >> 8);
        bytes[at + 1] = (uint8_t)target;
        const char *wrong = dnswire_read_reply(bytes, sizeof(bytes), &reply);
        if (links == 3) {
            assert_null(wrong);
            assert_int_equal(strlen(reply.records[1].name), 3 * 64 - 1);
        } else {
            assert_string_equal(wrong, "a name is too long");
        }
    }
}

static void records_of_other_types_are_told(void **state)
{
    static const uint8_t head[] = {0, 1, 0x84, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0 /* the root */};
    static const struct {
        uint16_t type;
        uint8_t data[24];
        uint8_t size;
        const char *expected;
    } cases[] = {
        {16, {3, 'a', 'b', 0, 1, 'c'}, 6, "ab? c"},
        {16, {9, 'a'}, 2, NULL},
        {1, {1, 2, 3}, 3, NULL},
        {28, {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 16, "fd00::1"},
        {15, {0, 10, 2, 'm', 'x', 0}, 6, "10 mx"},
        {33, {0, 1, 0, 2, 0, 80, 1, 's', 0}, 9, "1 2 80 s"},
        {33, {0, 1}, 2, NULL},
        {5, {1, 0x07, 0}, 3, "\\007"},
        {5, {5, 'a'}, 2, NULL},
        {999, {0xde, 0xad}, 2, "dead"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint8_t bytes[64];
        struct dnswire_reply reply;
        memcpy(bytes, head, sizeof(head));
        size_t at = sizeof(head);
        const uint8_t fixed[] = {
            (uint8_t)(cases[i].type >> 8), (uint8_t)cases[i].type, 0, 1, 0, 0, 0, 5, 0, cases[i].size};
        memcpy(bytes + at, fixed, sizeof(fixed));
        at += sizeof(fixed);
        memcpy(bytes + at, cases[i].data, cases[i].size);
        at += cases[i].size;
        const char *wrong = dnswire_read_reply(bytes, at, &reply);
        assert_int_equal(wrong == NULL, cases[i].expected != NULL);
        if (!wrong) {
            assert_string_equal(reply.records[0].data, cases[i].expected);
            assert_string_equal(reply.records[0].name, ".");
        }
    }
}

static void many_records_are_cut_and_told(void **state)
{
    uint8_t bytes[12 + 100 * 11] = {0, 0, 0x80, 0, 0, 0, 0, 100};
    struct dnswire_reply reply;

    (void)state;
    assert_null(dnswire_read_reply(bytes, sizeof(bytes), &reply));
    assert_int_equal(reply.record_count, DNSWIRE_RECORDS);
    assert_true(reply.records_left_out);
    assert_int_equal(reply.answer_count, 100);
}

static void words_and_numbers(void **state)
{
    uint16_t number;
    char text[16];

    (void)state;
    assert_true(dnswire_type_of("aaaa", &number));
    assert_int_equal(number, 28);
    assert_true(dnswire_type_of("TYPE65535", &number));
    assert_int_equal(number, 65535);
    assert_false(dnswire_type_of("TYPE65536", &number));
    assert_false(dnswire_type_of("NONSENSE", &number));
    assert_true(dnswire_class_of("chaos", &number));
    assert_int_equal(number, 3);
    assert_string_equal(dnswire_type_name(16, text), "TXT");
    assert_string_equal(dnswire_type_name(4711, text), "TYPE4711");
    assert_string_equal(dnswire_class_name(3, text), "CH");
    assert_string_equal(dnswire_rcode_name(3, text), "NXDOMAIN");
    assert_string_equal(dnswire_rcode_name(11, text), "RCODE11");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_query_is_as_the_rfc_wants_it),
        cmocka_unit_test(names_that_are_none_are_refused),
        cmocka_unit_test(a_reply_is_read),
        cmocka_unit_test(an_answer_to_another_question_is_none),
        cmocka_unit_test(every_cut_is_refused),
        cmocka_unit_test(pointers_lead_back_or_nowhere),
        cmocka_unit_test(a_name_cannot_grow_by_pointers),
        cmocka_unit_test(records_of_other_types_are_told),
        cmocka_unit_test(many_records_are_cut_and_told),
        cmocka_unit_test(words_and_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
