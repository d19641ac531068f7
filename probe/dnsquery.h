#pragma once

#include "dnswire.h"
#include "endpoint.h"
#include "outcome.h"
#include "request.h"

/* One question to one server, and its answer. */
enum dnsquery_result {
    DNSQUERY_ANSWERED,
    DNSQUERY_SILENT,
    DNSQUERY_FAILED, /* errno_value says it; the descriptor is still open for sockerr_judge */
};

struct dnsquery {
    struct dnswire_query query;
    struct endpoint server; /* with the port */
    bool tcp;
    int fd; /* -1 to begin; the caller's to close afterwards */
    int errno_value;
    const char *malformed; /* what was wrong with the last reply that could not be read, or NULL */
    int foreign;           /* replies that did not answer the question (another id, another name) */
    size_t reply_size;
};

/* Sends `exchange` over exchange->fd, a socket of the right type that is not connected yet, and waits for the answer.
 * Over UDP it asks up to three times within the deadline. */
enum dnsquery_result dnsquery_run(struct dnsquery *exchange, struct deadline deadline, struct dnswire_reply *ret_reply);
