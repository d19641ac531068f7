/* libcurl as a table of functions: 4 ms of start-up that only a command which speaks to the daemon pays.
 * Not for: using it; see http.c. */
#include "incus/curl.h"

#include "base/library.h"

/* Both flavours have the same functions; a machine may carry only the second. */
static const char *const sonames[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};

#define SYMBOL(name) LIBRARY_SYMBOL(struct curl, name, "curl_" #name)

static const struct library_symbol symbols[] = {
    SYMBOL(easy_init),     SYMBOL(easy_setopt),     SYMBOL(easy_getinfo),        SYMBOL(easy_strerror),
    SYMBOL(easy_cleanup),  SYMBOL(slist_append),    SYMBOL(slist_free_all),      SYMBOL(mime_init),
    SYMBOL(mime_addpart),  SYMBOL(mime_name),       SYMBOL(mime_filename),       SYMBOL(mime_type),
    SYMBOL(mime_data_cb),  SYMBOL(mime_free),       SYMBOL(multi_init),          SYMBOL(multi_add_handle),
    SYMBOL(multi_fdset),   SYMBOL(multi_timeout),   SYMBOL(multi_remove_handle), SYMBOL(multi_perform),
    SYMBOL(multi_cleanup), SYMBOL(multi_info_read), SYMBOL(multi_strerror),
};

int curl_load(struct curl *ret_curl, struct error *err)
{
    CLEANUP(error_reset) struct error first = {0};
    struct curl curl;
    for (size_t i = 0; i < ARRAY_LENGTH(sonames); i++) {
        if (library_load(sonames[i], "libcurl4", symbols, ARRAY_LENGTH(symbols), &curl, i == 0 ? &first : NULL) == 0) {
            *ret_curl = curl;
            return 0;
        }
    }
    return error_move(err, &first);
}
