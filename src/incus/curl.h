#ifndef BOX_INCUS_CURL_H
#define BOX_INCUS_CURL_H

#include "base/error.h"

#include <curl/curl.h>

/* The functions of libcurl that http.c calls, loaded on first use (base/library.h). */
struct curl {
    CURL *(*easy_init)(void);
    CURLcode (*easy_setopt)(CURL *easy, CURLoption option, ...);
    CURLcode (*easy_getinfo)(CURL *easy, CURLINFO info, ...);
    const char *(*easy_strerror)(CURLcode code);
    void (*easy_cleanup)(CURL *easy);
    struct curl_slist *(*slist_append)(struct curl_slist *list, const char *text);
    void (*slist_free_all)(struct curl_slist *list);
    curl_mime *(*mime_init)(CURL *easy);
    curl_mimepart *(*mime_addpart)(curl_mime *mime);
    CURLcode (*mime_name)(curl_mimepart *part, const char *name);
    CURLcode (*mime_filename)(curl_mimepart *part, const char *name);
    CURLcode (*mime_type)(curl_mimepart *part, const char *type);
    CURLcode (*mime_data_cb)(curl_mimepart *part, curl_off_t size, curl_read_callback read, curl_seek_callback seek,
                             curl_free_callback release, void *context);
    void (*mime_free)(curl_mime *mime);
    CURLM *(*multi_init)(void);
    CURLMcode (*multi_add_handle)(CURLM *multi, CURL *easy);
    CURLMcode (*multi_remove_handle)(CURLM *multi, CURL *easy);
    CURLMcode (*multi_fdset)(CURLM *multi, fd_set *read, fd_set *write, fd_set *except, int *ret_highest);
    CURLMcode (*multi_timeout)(CURLM *multi, long *ret_milliseconds);
    CURLMcode (*multi_perform)(CURLM *multi, int *ret_running);
    CURLMsg *(*multi_info_read)(CURLM *multi, int *ret_left);
    const char *(*multi_strerror)(CURLMcode code);
    CURLMcode (*multi_cleanup)(CURLM *multi);
};

/* Fails with ERR_SYSTEM and the package to install. */
int curl_load(struct curl *ret_curl, struct error *err);

#endif
