/* The daemon's envelope: every shape that it has, and many that it should not have.
 * Not for: what the metadata mean. */
#include "unit.h"

#include "incus/envelope.h"

#include <string.h>

static int read_body(int http, const char *body, struct envelope *ret_envelope, struct error *err)
{
    return envelope_read(http, body, strlen(body), "GET /1.0", ret_envelope, err);
}

static void expect_error(int http, const char *body, enum error_code code, int status, const char *words)
{
    CLEANUP(error_reset) struct error err = {0};
    struct envelope envelope = {0};
    assert_int_equal(read_body(http, body, &envelope, &err), -1);
    assert_int_equal(err.code, code);
    assert_int_equal(err.http, status);
    assert_non_null(strstr(err.message, words));
    assert_null(envelope.metadata);
}

static void a_synchronous_answer(void **state)
{
    CLEANUP(envelope_reset) struct envelope envelope = {0};
    assert_int_equal(read_body(200, "{\"type\":\"sync\",\"status_code\":200,\"metadata\":{\"a\":1}}", &envelope, NULL),
                     0);
    assert_int_equal(json_number(envelope.metadata, "a", 0), 1);
    assert_null(envelope.operation);
}

static void null_metadata_are_none(void **state)
{
    CLEANUP(envelope_reset) struct envelope envelope = {0};
    assert_int_equal(read_body(200, "{\"type\":\"sync\",\"metadata\":null}", &envelope, NULL), 0);
    assert_null(envelope.metadata);
}

static void an_operation(void **state)
{
    CLEANUP(envelope_reset) struct envelope envelope = {0};
    const char *body =
        "{\"type\":\"async\",\"operation\":\"/1.0/operations/0a-1b?project=x\",\"metadata\":{\"id\":\"0a-1b\"}}";
    assert_int_equal(read_body(202, body, &envelope, NULL), 0);
    assert_string_equal(envelope.operation, "/1.0/operations/0a-1b");
}

static void an_operation_that_is_no_path(void **state)
{
    static const char *const bad[] = {
        "/1.0/operations/",  "/1.0/operations/a b",   "/1.0/operations/a\\r\\nX: y", "", "/1.0/operations/../instances",
        "/2.0/operations/a", "/1.0/operations/a/../b"};
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        char body[200];
        snprintf(body, sizeof(body), "{\"type\":\"async\",\"operation\":\"%s\"}", bad[i]);
        expect_error(202, body, ERR_PROTOCOL, 202, "names no operation");
    }
}

static void an_operation_without_a_name(void **state)
{
    expect_error(202, "{\"type\":\"async\"}", ERR_PROTOCOL, 202, "names no operation");
    expect_error(202, "{\"type\":\"async\",\"operation\":null}", ERR_PROTOCOL, 202, "names no operation");
}

static void refusals(void **state)
{
    expect_error(404, "{\"type\":\"error\",\"error_code\":404,\"error\":\"gone\"}", ERR_NOT_FOUND, 404,
                 "Incus says: gone");
    expect_error(409, "{\"type\":\"error\",\"error_code\":409,\"error\":\"dup\"}", ERR_EXISTS, 409, "dup");
    expect_error(403, "{\"type\":\"error\",\"error_code\":403,\"error\":\"no\"}", ERR_DENIED, 403, "no");
    expect_error(500, "{\"type\":\"error\",\"error_code\":500,\"error\":\"\"}", ERR_REFUSED_BY_INCUS, 500,
                 "without a reason");
    expect_error(412, "{\"type\":\"error\",\"error\":\"etag\"}", ERR_REFUSED_BY_INCUS, 412, "etag");
    expect_error(200, "{\"type\":\"error\",\"error_code\":500,\"error\":\"late\"}", ERR_REFUSED_BY_INCUS, 500, "late");
}

static void words_are_safe_to_print(void **state)
{
    CLEANUP(error_reset) struct error err = {0};
    struct envelope envelope = {0};
    assert_int_equal(read_body(500, "{\"type\":\"error\",\"error\":\"a\\u001b[31mb\"}", &envelope, &err), -1);
    assert_null(strchr(err.message, '\033'));
}

static void broken_answers(void **state)
{
    expect_error(200, "", ERR_PROTOCOL, 200, "broken");
    expect_error(200, "<html>", ERR_PROTOCOL, 200, "broken");
    expect_error(200, "{\"type\":\"sync\",\"metadata\":{", ERR_PROTOCOL, 200, "broken");
    expect_error(200, "[]", ERR_PROTOCOL, 200, "neither");
    expect_error(200, "{\"type\":7}", ERR_PROTOCOL, 200, "neither");
    expect_error(502, "<html>bad gateway", ERR_PROTOCOL, 502, "broken");
}

static int outcome(const char *body, json_t **ret_metadata, struct error *err)
{
    return envelope_outcome(200, body, strlen(body), ret_metadata, err);
}

static void an_operation_that_went_well(void **state)
{
    CLEANUP(json_freep) json_t *metadata = NULL;
    const char *body = "{\"type\":\"sync\",\"metadata\":{\"status_code\":200,\"metadata\":{\"return\":3}}}";
    assert_int_equal(outcome(body, &metadata, NULL), 0);
    assert_int_equal(json_number(metadata, "return", 0), 3);
}

static void expect_outcome(const char *body, enum error_code code, const char *words)
{
    CLEANUP(error_reset) struct error err = {0};
    json_t *metadata = NULL;
    assert_int_equal(outcome(body, &metadata, &err), -1);
    assert_int_equal(err.code, code);
    assert_non_null(strstr(err.message, words));
    assert_null(metadata);
}

static void an_operation_that_failed(void **state)
{
    expect_outcome("{\"type\":\"error\",\"error_code\":500,\"error\":\"Image with same fingerprint already exists\"}",
                   ERR_EXISTS, "fingerprint");
    expect_outcome("{\"type\":\"error\",\"error_code\":500,\"error\":\"UNIQUE constraint failed: instances.name\"}",
                   ERR_EXISTS, "UNIQUE");
    expect_outcome("{\"type\":\"error\",\"error_code\":500,\"error\":\"Snapshot a/b does not exist\"}", ERR_NOT_FOUND,
                   "a/b");
    expect_outcome("{\"type\":\"error\",\"error_code\":500,\"error\":\"no space\"}", ERR_REFUSED_BY_INCUS, "no space");
    expect_outcome("{\"type\":\"error\",\"error_code\":403,\"error\":\"not found\"}", ERR_DENIED, "not found");
    expect_outcome("{\"type\":\"sync\",\"metadata\":{\"status_code\":400,\"err\":\"Instance not found\"}}",
                   ERR_NOT_FOUND, "Instance not found");
    expect_outcome("{\"type\":\"sync\",\"metadata\":{\"status_code\":401,\"err\":\"\"}}", ERR_REFUSED_BY_INCUS,
                   "cancelled");
}

static void an_operation_without_an_end(void **state)
{
    expect_outcome("{\"type\":\"sync\",\"metadata\":{\"status_code\":103}}", ERR_PROTOCOL, "103");
    expect_outcome("{\"type\":\"sync\",\"metadata\":null}", ERR_PROTOCOL, "status 0");
    expect_outcome("", ERR_PROTOCOL, "broken");
}

static void progress_is_found(void **state)
{
    CLEANUP(json_freep)
    json_t *metadata = json_pack("{s:{s:s}, s:s}", "progress", "percent", "1",
                                 "create_instance_from_image_unpack_progress", "Unpack: 4%\x1b");
    char *text = envelope_progress(metadata);
    assert_non_null(text);
    assert_non_null(strstr(text, "Unpack: 4%"));
    assert_null(strchr(text, '\033'));
    free(text);
    assert_null(envelope_progress(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_synchronous_answer),
        cmocka_unit_test(null_metadata_are_none),
        cmocka_unit_test(an_operation),
        cmocka_unit_test(an_operation_that_is_no_path),
        cmocka_unit_test(an_operation_without_a_name),
        cmocka_unit_test(refusals),
        cmocka_unit_test(words_are_safe_to_print),
        cmocka_unit_test(broken_answers),
        cmocka_unit_test(an_operation_that_went_well),
        cmocka_unit_test(an_operation_that_failed),
        cmocka_unit_test(an_operation_without_an_end),
        cmocka_unit_test(progress_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
