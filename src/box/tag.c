/* Which instances are boxes, and how their stamped keys are read, in both generations.
 * Not for writing the stamp (mint.c), nor for what a box may have besides (contract.c). */
#include "box/tag.h"

#include "base/text.h"

#include <string.h>

const char *tag_value(const json_t *instance, const char *key)
{
    return json_text(json_object_get(instance, "config"), key);
}

bool tag_is_box(const json_t *instance)
{
    return text_equal(tag_value(instance, TAG_KEY), "1") || text_equal(tag_value(instance, TAG_OLDER), "1");
}

bool tag_is_seed(const json_t *instance)
{
    return tag_value(instance, TAG_SEED) != NULL;
}

const char *tag_user(const json_t *instance)
{
    const char *user = tag_value(instance, TAG_USER);

    if (user && tag_valid_user(user)) {
        return user;
    }
    return text_equal(tag_value(instance, TAG_OLDER), "1") ? TAG_OLDER_USER : NULL;
}

bool tag_valid_user(const char *name)
{
    size_t length = strlen(name);

    if (length == 0 || length > 32 || (name[0] != '_' && (name[0] < 'a' || name[0] > 'z'))) {
        return false;
    }
    return strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") == length;
}
