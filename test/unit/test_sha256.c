/* SHA-256 against the examples of FIPS 180-4 and at every boundary of a block.
 * Not for: speed. */
#include "unit.h"

#include "base/sha256.h"

#include <string.h>

static void expect(const char *text, size_t repeat, const char *hex)
{
    struct sha256 digest;
    char result[SHA256_HEX_SIZE];
    sha256_start(&digest);
    for (size_t i = 0; i < repeat; i++) {
        sha256_feed(&digest, text, strlen(text));
    }
    sha256_finish(&digest, result);
    assert_string_equal(result, hex);
}

static void known_digests(void **state)
{
    expect("", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect("abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
           "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    expect("a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void pieces_do_not_matter(void **state)
{
    char data[200];
    memset(data, 'x', sizeof(data));
    for (size_t length = 0; length <= sizeof(data); length++) {
        struct sha256 whole, pieces;
        char first[SHA256_HEX_SIZE], second[SHA256_HEX_SIZE];
        sha256_start(&whole);
        sha256_feed(&whole, data, length);
        sha256_finish(&whole, first);
        sha256_start(&pieces);
        sha256_feed(&pieces, data, length / 3);
        sha256_feed(&pieces, data + length / 3, length - length / 3);
        sha256_finish(&pieces, second);
        assert_string_equal(first, second);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(known_digests), cmocka_unit_test(pieces_do_not_matter)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
