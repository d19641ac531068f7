/* Mirrors src/cli/publickey.c. */
#include "base/memory.h"
#include "cli/publickey.h"
#include "unit.h"

#define ED25519 "AAAAC3NzaC1lZDI1NTE5AAAAIFFRUVFRUVFRUVFRUVFRUVFRUVFRUVFRUVFRUVFRUVFR"

static void takes_what_ssh_keygen_writes(void **state)
{
    static const char *const keys[] = {
        "ssh-ed25519 " ED25519,
        "ssh-ed25519 " ED25519 " somebody@somewhere, with words",
        "ssh-ed25519\t" ED25519,
        "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAAABUQ== x",
    };
    for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
        assert_true(publickey_is_one(keys[i]));
    }
}

static void refuses_all_else(void **state)
{
    static const char *const texts[] = {
        "",
        "ssh-ed25519",
        "ssh-ed25519 ",
        "ssh-ed25519 AAAAjunk",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI!!!",
        "ssh-ed25519 " ED25519 "A",
        "ssh-ed25519 " ED25519 "\nssh-ed25519 " ED25519,
        "ssh-ed25519 =AAA",
        "ssh-ed25519 ====",
        "ssh-rsa " ED25519,
        "ssh-dss " ED25519,
        "ssh-ed25519 /////3NzaC1lZDI1NTE5AAAA",
        "-----BEGIN OPENSSH PRIVATE KEY-----",
    };
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
        assert_false(publickey_is_one(texts[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_what_ssh_keygen_writes),
        cmocka_unit_test(refuses_all_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
