/* Mirrors probe/sshkey.c and probe/sha2.c. */
#include "sha2.h"
#include "sshkey.h"
#include "unit.h"

#include <string.h>

static void digest_is(const void *data, size_t size, const char *expected)
{
    static const char digits[] = "0123456789abcdef";
    uint8_t digest[32];
    char text[65];

    sha2_256(data, size, digest);
    for (int i = 0; i < 32; i++) {
        text[i * 2] = digits[digest[i] >> 4];
        text[i * 2 + 1] = digits[digest[i] & 15];
    }
    text[64] = '\0';
    assert_string_equal(text, expected);
}

/* The vectors of FIPS 180-4, and the lengths around the padding's edge. */
static void known_digests(void **state)
{
    static char many[1000];

    (void)state;
    memset(many, 'a', sizeof(many));
    digest_is("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    digest_is("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    digest_is("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    digest_is(many, 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
    digest_is(many, 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
    digest_is(many, 1000, "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3");
}

static void a_key_has_the_fingerprint_that_ssh_keygen_shows(void **state)
{
    char type[SSHKEY_TYPE];
    char fingerprint[SSHKEY_FINGERPRINT];

    (void)state;
    assert_true(sshkey_fingerprint(
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIL1/BhZGVuyjKQb3a57r57KZ/I4VvGV6cbMU32nxcUpI x@y\n", type, fingerprint));
    assert_string_equal(type, "ssh-ed25519");
    assert_string_equal(fingerprint, "SHA256:8S5xKDbg669xGYGbpKQKYkuWhbg68Ak2/FCBNgF0VKk");
}

static void what_is_no_key_is_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "ssh-ed25519",
                                      "ssh-ed25519 ",
                                      "ssh-ed25519 !!!!",
                                      " AAAA",
                                      "a-type-that-is-much-longer-than-any-type-of-a-key AAAA"};
    char type[SSHKEY_TYPE] = "kept";
    char fingerprint[SSHKEY_FINGERPRINT] = "kept";

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(sshkey_fingerprint(bad[i], type, fingerprint));
        assert_string_equal(type, "kept");
        assert_string_equal(fingerprint, "kept");
    }
    char much[4096];
    memset(much, 'A', sizeof(much));
    memcpy(much, "ssh-rsa ", 8);
    much[sizeof(much) - 1] = '\0';
    assert_false(sshkey_fingerprint(much, type, fingerprint));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_digests),
        cmocka_unit_test(a_key_has_the_fingerprint_that_ssh_keygen_shows),
        cmocka_unit_test(what_is_no_key_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
