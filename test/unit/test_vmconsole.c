/* What a VM's console tells about a boot that never ends. */
#include "box/vmconsole.h"
#include "unit.h"

#include <string.h>

static void assert_cause(const char *text, const char *cause)
{
    struct vmconsole_verdict verdict = {0};

    vmconsole_judge(text, strlen(text), &verdict);
    assert_string_equal(verdict.cause, cause);
    vmconsole_reset(&verdict);
}

static void names_the_furthest_point(void **state)
{
    (void)state;
    assert_cause("", "its console is empty: its firmware did not start, or says nothing");
    assert_cause("BdsDxe: loading Boot0001", "its firmware runs, and started nothing yet");
    assert_cause("BdsDxe: loading Boot0001\r\nEFI stub: Loaded initrd",
                 "its kernel was loaded, and did not unpack itself");
    assert_cause("EFI stub: x\nLinux version 6.12\n", "its kernel runs, and has not started the system yet");
    assert_cause("Linux version 6.12\nsystemd[1]: x\nDebian GNU/Linux 13 v ttyS0\n\nv login: ",
                 "it has booted, and Incus's agent does not run in it");
}

static void a_dead_end_decides(void **state)
{
    (void)state;
    assert_cause("BdsDxe: failed to load Boot0001: Access Denied\n", "Secure Boot refused what it was to boot");
    assert_cause("BdsDxe: No bootable option or device was found.\n", "its firmware found nothing to boot from");
    assert_cause("Linux version 6.12\nKernel panic - not syncing\nlogin:", "its kernel panicked");
    assert_cause("Linux version 6.12\nALERT! does not exist\n(initramfs) ", "its root file system was not found");
}

static void any_bytes_are_safe(void **state)
{
    struct vmconsole_verdict verdict = {0};
    const char text[] = "Linux version\0\n\x1b]0;evil\x07last \x1b[2Jline\r\n \r\n";

    (void)state;
    vmconsole_judge(text, sizeof(text) - 1, &verdict);
    assert_string_equal(verdict.cause, "its kernel runs, and has not started the system yet");
    assert_non_null(verdict.last);
    assert_null(strchr(verdict.last, '\x1b'));
    assert_non_null(strstr(verdict.last, "line"));
    vmconsole_reset(&verdict);
    vmconsole_judge("\r\n \n", 4, &verdict);
    assert_null(verdict.last);
    vmconsole_reset(&verdict);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_the_furthest_point),
        cmocka_unit_test(a_dead_end_decides),
        cmocka_unit_test(any_bytes_are_safe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
