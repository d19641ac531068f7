/* Mirrors src/box/recipe.c: what every recipe keeps to. */
#include "base/text.h"
#include "box/recipe.h"
#include "unit.h"

#include <string.h>

static void each_alias_has_its_recipe(void **state)
{
    assert_non_null(recipe_aliases[0]);
    for (size_t i = 0; recipe_aliases[i]; i++) {
        const struct recipe *recipe = recipe_find(recipe_aliases[i]);

        assert_non_null(recipe);
        assert_string_equal(recipe->alias, recipe_aliases[i]);
        assert_int_equal(recipe->vm, text_ends_with(recipe->alias, RECIPE_VM_SUFFIX));
    }
    assert_null(recipe_find("debian/99"));
    assert_null(recipe_find(""));
}

/* The builder joins them to the image's root, as root of the host. */
static void no_path_leaves_the_image(void **state)
{
    for (size_t i = 0; recipe_aliases[i]; i++) {
        const struct recipe *recipe = recipe_find(recipe_aliases[i]);

        for (size_t j = 0; j < recipe->entry_count; j++) {
            const struct recipe_entry *entry = &recipe->entries[j];

            assert_true(entry->path[0] != '/' && entry->path[0] != '\0');
            assert_null(strstr(entry->path, ".."));
            assert_int_equal(entry->text != NULL, entry->kind != RECIPE_MASK && entry->kind != RECIPE_REMOVE);
            assert_int_equal(strchr(entry->path, '/') == NULL, entry->kind == RECIPE_MASK);
        }
    }
}

static bool has(const struct recipe *recipe, enum recipe_kind kind, const char *path)
{
    for (size_t i = 0; i < recipe->entry_count; i++) {
        if (recipe->entries[i].kind == kind && text_equal(recipe->entries[i].path, path)) {
            return true;
        }
    }
    return recipe->base && has(recipe->base, kind, path);
}

/* Two boxes with one host key or one machine-id would be each other. */
static void no_image_carries_an_identity(void **state)
{
    for (size_t i = 0; recipe_aliases[i]; i++) {
        const struct recipe *recipe = recipe_find(recipe_aliases[i]);

        assert_true(has(recipe, RECIPE_REMOVE, "etc/ssh/ssh_host_*"));
        assert_true(has(recipe, RECIPE_REMOVE, "etc/hostname"));
        assert_true(has(recipe, RECIPE_FILE, "etc/machine-id"));
        assert_true(has(recipe, RECIPE_MASK, "ssh.service"));
        assert_true(has(recipe, RECIPE_MASK, "ssh.socket"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_alias_has_its_recipe),
        cmocka_unit_test(no_path_leaves_the_image),
        cmocka_unit_test(no_image_carries_an_identity),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
