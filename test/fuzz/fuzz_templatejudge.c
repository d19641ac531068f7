/* What the programs of an image say of a template: the box that asks them is a guest like any other. Whatever comes, an answer is
 * whole, short, and fit for a terminal.
 * Not for the template itself (fuzz_template.c). */
#include "base/memory.h"
#include "base/text.h"
#include "box/templatejudge.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_line(const char *text)
{
    if (!text_is_utf8(text, strlen(text)) || strlen(text) > 4000) {
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
    CLEANUP(templatejudge_reset) struct templatejudge_answer answer = {0};
    CLEANUP(error_reset) struct error err = {0};

    if (templatejudge_read((const char *)data, size, &answer, &err) < 0) {
        if (err.code != ERR_PROTOCOL || answer.schema || answer.users || answer.syntax) {
            abort();
        }
        return 0;
    }
    check_line(answer.schema);
    check_line(answer.users ? answer.users : "");
    check_line(answer.syntax ? answer.syntax : "");
    return 0;
}
