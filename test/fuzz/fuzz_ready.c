/* What a guest reports of its first boot: root in it may write anything. Whatever comes, the verdict is one of two, and no reason or
 * warning carries a control character to a terminal.
 * Not for the websocket that brings it. */
#include "base/argv.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/ready.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_line(const char *text)
{
    if (!text || !text_is_utf8(text, strlen(text))) {
        abort();
    }
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        if (*at < 0x20 || *at == 0x7f) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(ready_reset) struct ready_report report = {0};
    CLEANUP(argv_reset) struct argv warnings = {0};
    CLEANUP(freep) char *reason = NULL;
    CLEANUP(freep) char *other = NULL;
    struct ready_user user = {0};

    ready_parse((const char *)data, size, &report);
    if (!ready_cloud_applied(&report, &warnings, &reason)) {
        check_line(reason);
    }
    for (size_t i = 0; i < warnings.count; i++) {
        check_line(warnings.items[i]);
    }
    if (!ready_usable(&report, "dev", &user, &other)) {
        check_line(other);
    } else if (user.uid < 0 || user.gid < 0 || user.home[0] != '/') {
        abort();
    }
    free(user.home);
    return 0;
}
