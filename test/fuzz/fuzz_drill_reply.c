/* Whatever a guest writes instead of the instrument's answer: parsed, printed and released without harm. */
#include "base/buffer.h"
#include "base/memory.h"
#include "drill/reply.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reply reply = {0};

    if (reply_parse((const char *)data, size, &reply, NULL) == 0) {
        CLEANUP(json_freep) json_t *value = reply_to_json(&reply);
        if (value) {
            CLEANUP(freep) char *text = json_write(value, 0);
            (void)text;
        }
    }
    reply_reset(&reply);
    return 0;
}
