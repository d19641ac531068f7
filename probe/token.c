/* Randomness from the kernel: the token in each payload, fresh ports and identifiers.
 * It keeps no state: nothing here may repeat itself because a clone shares a seed.
 */
#include "token.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/random.h>

_Bool token_make(char text[TOKEN_TEXT])
{
    uint8_t bytes[9];

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
        return 0;
    }
    int length = snprintf(text, TOKEN_TEXT, "box-probe-");
    for (unsigned i = 0; i < sizeof(bytes); i++) {
        length += snprintf(text + length, (size_t)(TOKEN_TEXT - length), "%02x", bytes[i]);
    }
    return 1;
}

unsigned token_random(unsigned limit)
{
    uint32_t number = 0;

    /* Four bytes are never cut short; without them 0 is as good as any. */
    if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number)) {
        return 0;
    }
    return limit ? number % limit : number;
}
