/* A template's box.env, which somebody else wrote: whatever comes, what is handed on keeps the rules of each value.
 * Not for user-data, which is handed on as it is. */
#include "base/memory.h"
#include "base/text.h"
#include "box/limits.h"
#include "box/tag.h"
#include "box/template.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *text)
{
    if (!text_is_utf8(text, strlen(text)) || text[strcspn(text, "\r\n\"\x1b")] != '\0') {
        abort();
    }
}

static void check_size(const char *text)
{
    int64_t bytes = 0;
    if (text && (!limits_parse_size(text, &bytes) || bytes <= 0)) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(template_reset) struct template template = {0};
    CLEANUP(error_reset) struct error err = {0};
    if (template_parse("F", (const char *)data, size, &template, &err) < 0) {
        if (err.code != ERR_USAGE || strncmp(err.message, "F:", 2) != 0 || strlen(err.message) > 1000 ||
            template.image != NULL) {
            abort();
        }
        return 0;
    }
    check_text(template.description);
    check_text(template.image);
    check_text(template.login);
    if (!tag_valid_user(template.user)) {
        abort();
    }
    check_size(template.limits.memory);
    check_size(template.limits.disk);
    return 0;
}
