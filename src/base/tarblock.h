#ifndef BOX_BASE_TARBLOCK_H
#define BOX_BASE_TARBLOCK_H

#include <stddef.h>

/* The unit of a tar stream (POSIX.1-2017 pax, "ustar Interchange Format"). */
#define TARBLOCK_SIZE ((size_t)512)

enum tarblock_type {
    TARBLOCK_FILE = '0',
    TARBLOCK_SYMLINK = '2',
    TARBLOCK_DIRECTORY = '5',
    TARBLOCK_PAX = 'x',
    TARBLOCK_PAX_GLOBAL = 'g',
    TARBLOCK_GNU_NAME = 'L',
    TARBLOCK_GNU_LINK = 'K',
};

union tarblock {
    unsigned char bytes[512];
    struct {
        char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100], magic[8], user[32],
            group[32], major[8], minor[8], prefix[155], rest[12];
    } field;
};

/* The sum of all bytes, those of the field `sum` taken as blanks. */
static inline unsigned tarblock_sum(const union tarblock *block)
{
    unsigned sum = 0;
    size_t begin = offsetof(union tarblock, field.sum), end = begin + sizeof(block->field.sum);
    for (size_t i = 0; i < sizeof(block->bytes); i++) {
        sum += i >= begin && i < end ? (unsigned char)' ' : block->bytes[i];
    }
    return sum;
}

#endif
