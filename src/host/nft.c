/* Hands texts of commands to libnftables and gives back what it lists.
 * The library is opened at run time: its 20 dependencies cost start-up time that most commands need not pay.
 * Not for what the rules say: src/stack/ruleset.c. */
#include "host/nft.h"

#include "base/library.h"
#include "base/memory.h"
#include "base/text.h"

#include <errno.h>
#include <nftables/libnftables.h>
#include <stdio.h>
#include <string.h>

struct nft_library {
    struct nft_ctx *(*ctx_new)(uint32_t flags);
    void (*ctx_free)(struct nft_ctx *ctx);
    FILE *(*set_output)(struct nft_ctx *ctx, FILE *file);
    int (*buffer_error)(struct nft_ctx *ctx);
    const char *(*error)(struct nft_ctx *ctx);
    void (*set_output_flags)(struct nft_ctx *ctx, unsigned int flags);
    int (*run)(struct nft_ctx *ctx, const char *text);
};

struct nft {
    struct nft_library library;
    struct nft_ctx *context;
};

static const struct library_symbol symbols[] = {
    LIBRARY_SYMBOL(struct nft_library, ctx_new, "nft_ctx_new"),
    LIBRARY_SYMBOL(struct nft_library, ctx_free, "nft_ctx_free"),
    LIBRARY_SYMBOL(struct nft_library, set_output, "nft_ctx_set_output"),
    LIBRARY_SYMBOL(struct nft_library, buffer_error, "nft_ctx_buffer_error"),
    LIBRARY_SYMBOL(struct nft_library, error, "nft_ctx_get_error_buffer"),
    LIBRARY_SYMBOL(struct nft_library, set_output_flags, "nft_ctx_output_set_flags"),
    LIBRARY_SYMBOL(struct nft_library, run, "nft_run_cmd_from_buffer"),
};

int nft_open(struct nft **ret_nft, struct error *err)
{
    CLEANUP(nft_closep) struct nft *nft = xcalloc(1, sizeof(*nft));
    if (library_load("libnftables.so.1", "libnftables1", symbols, ARRAY_LENGTH(symbols), &nft->library, err) < 0) {
        return -1;
    }
    nft->context = nft->library.ctx_new(NFT_CTX_DEFAULT);
    if (nft->context == NULL || nft->library.buffer_error(nft->context) != 0) {
        return error_set(err, ERR_SYSTEM, "libnftables gave no context");
    }
    *ret_nft = steal(&nft);
    return 0;
}

void nft_close(struct nft *nft)
{
    if (nft == NULL) {
        return;
    }
    if (nft->context != NULL) {
        nft->library.ctx_free(nft->context);
    }
    free(nft);
}

/* libnftables reports in text only; the words at the end of its lines are strerror()'s. */
static int fail(const char *words, struct error *err)
{
    static const struct {
        const char *words;
        enum error_code code;
    } codes[] = {
        {"No such file or directory", ERR_NOT_FOUND},
        {"File exists", ERR_EXISTS},
        {"Operation not permitted", ERR_DENIED},
        {"you must be root", ERR_DENIED},
    };
    enum error_code code = ERR_SYSTEM;
    for (size_t i = 0; i < ARRAY_LENGTH(codes); i++) {
        if (strstr(words, codes[i].words) != NULL) {
            code = codes[i].code;
        }
    }
    const char *start = text_starts_with(words, "Error: ") ? words + strlen("Error: ") : words;
    return error_set(err, code, "nftables: %.*s", (int)strcspn(start, "\n"), start);
}

/* Runs the text with its output in memory of ours: the library's own buffer loses most of a long listing under the
 * address sanitizer. The caller frees *ret_output. */
static int run(struct nft *nft, unsigned flags, const char *text, char **ret_output, struct error *err)
{
    CLEANUP(freep) char *output = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&output, &length);
    if (stream == NULL) {
        return error_set_errno(err, errno, "cannot hold the output of nftables");
    }
    nft->library.set_output_flags(nft->context, flags);
    (void)nft->library.set_output(nft->context, stream);
    int status = nft->library.run(nft->context, text);
    /* Never left with a stream that is closed. */
    (void)nft->library.set_output(nft->context, stdout);
    (void)fclose(stream);
    /* Reading it empties the buffer. */
    const char *words = nft->library.error(nft->context);
    if (status != 0) {
        return fail(text_is_empty(words) ? "the transaction failed without a word" : words, err);
    }
    *ret_output = steal(&output);
    return 0;
}

int nft_apply(struct nft *nft, const char *text, struct error *err)
{
    CLEANUP(freep) char *output = NULL;
    return run(nft, 0, text, &output, err);
}

int nft_list(struct nft *nft, const char *command, char **ret_text, struct error *err)
{
    return run(nft, NFT_CTX_OUTPUT_STATELESS | NFT_CTX_OUTPUT_TERSE, command, ret_text, err);
}

int nft_query(struct nft *nft, const char *command, json_t **ret_array, struct error *err)
{
    CLEANUP(freep) char *text = NULL;
    CLEANUP(json_freep) json_t *answer = NULL;
    if (run(nft, NFT_CTX_OUTPUT_STATELESS | NFT_CTX_OUTPUT_JSON, command, &text, err) < 0 ||
        json_parse(text, strlen(text), "the listing of nftables", &answer, err) < 0) {
        return -1;
    }
    json_t *array = json_object_get(answer, "nftables");
    if (!json_is_array(array)) {
        return error_set(err, ERR_PROTOCOL, "nftables listed something without an array");
    }
    *ret_array = json_incref(array);
    return 0;
}
