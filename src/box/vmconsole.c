/* What the console of a VM that never answers says about why: the firmware, the kernel, the root file system, the
 * agent. Not for reading it (incus/instance.h), nor for how long to wait (birth.c). */
#include "box/vmconsole.h"

#include "base/cleanup.h"
#include "base/memory.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* How far a boot came, in its order: the last row whose sign is there decides, but a row that is final decides at once.
 */
static const struct {
    const char *sign;
    bool final;
    const char *cause;
    const char *remedy;
} signs[] = {
    {"BdsDxe", false, "its firmware runs, and started nothing yet", NULL},
    {"Security Violation", true, "Secure Boot refused what it was to boot",
     "box mints VMs with security.secureboot=false; look whether it was set again: incus config show"},
    {"Access Denied", true, "Secure Boot refused what it was to boot",
     "box mints VMs with security.secureboot=false; look whether it was set again: incus config show"},
    {"No bootable option", true, "its firmware found nothing to boot from",
     "mint it from another image: box image build --vm"},
    {"Boot Manager Menu", true, "its firmware stopped in its menu: it found nothing to boot from",
     "mint it from another image: box image build --vm"},
    {"UEFI Interactive Shell", true, "its firmware ended in its shell: it found nothing to boot from",
     "mint it from another image: box image build --vm"},
    {"EFI stub: ", false, "its kernel was loaded, and did not unpack itself",
     "give it more memory: box new --memory 1GiB"},
    {"Out of memory", true, "its kernel has too little memory", "give it more memory: box new --memory 1GiB"},
    {"Linux version", false, "its kernel runs, and has not started the system yet", NULL},
    {"Kernel panic", true, "its kernel panicked", NULL},
    {"(initramfs)", true, "its root file system was not found", "mint it from another image: box image build --vm"},
    {"systemd[1]", false, "its system is booting, and slower than was waited for", NULL},
    {"login:", false, "it has booted, and Incus's agent does not run in it",
     "an image for VMs needs the package incus-agent and the drive agent:config: box image build --vm"},
};

/* Memory that ends in a zero, whatever is in it: a zero byte of the guest's must not hide the rest. */
static char *readable(const char *text, size_t length)
{
    char *copy = xmalloc(length + 1);

    for (size_t i = 0; i < length; i++) {
        copy[i] = text[i] ? text[i] : ' ';
    }
    copy[length] = '\0';
    return copy;
}

static char *last_line(char *text)
{
    char *line = NULL;

    for (char *at = text; *at;) {
        size_t length = strcspn(at, "\r\n");
        size_t blank = strspn(at, " \t");

        if (blank < length) {
            line = at + blank;
        }
        at += length;
        at += strspn(at, "\r\n");
    }
    if (!line) {
        return NULL;
    }
    return text_sanitise(line, strcspn(line, "\r\n"));
}

void vmconsole_judge(const char *text, size_t length, struct vmconsole_verdict *ret_verdict)
{
    CLEANUP(freep) char *copy = readable(text, length);
    struct vmconsole_verdict verdict = {.cause = "its console is empty: its firmware did not start, or says nothing"};

    if (copy[strspn(copy, " \t\r\n")] != '\0') {
        verdict.cause = "its console says nothing that box knows";
    }
    for (size_t i = 0; i < ARRAY_LENGTH(signs); i++) {
        if (strstr(copy, signs[i].sign)) {
            verdict.cause = signs[i].cause;
            verdict.remedy = signs[i].remedy;
            if (signs[i].final) {
                break;
            }
        }
    }
    verdict.last = last_line(copy);
    *ret_verdict = verdict;
}

void vmconsole_reset(struct vmconsole_verdict *verdict)
{
    free(verdict->last);
    *verdict = (struct vmconsole_verdict){0};
}
