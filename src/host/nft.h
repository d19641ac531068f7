#ifndef BOX_HOST_NFT_H
#define BOX_HOST_NFT_H

#include "base/error.h"
#include "base/json.h"

/* nftables through libnftables, loaded on first use. Needs CAP_NET_ADMIN. */
struct nft;

/* A handle, with a netlink socket of its own: a table that was made with `flags owner` through it lives as long as the
 * handle, and nobody else can change it. */
int nft_open(struct nft **ret_nft, struct error *err);
void nft_close(struct nft *nft);
DEFINE_CLEANUP(struct nft *, nft_close)

/* Runs a text of commands as one transaction: all of it holds afterwards, or none. ERR_NOT_FOUND where it names what
 * does not exist, ERR_EXISTS, ERR_DENIED (also for another's owned table), else ERR_SYSTEM with libnftables's words. */
int nft_apply(struct nft *nft, const char *text, struct error *err);

/* What a list command prints, without counters and without the elements of named sets: the meaning of a table, free of
 * what changes by itself. ERR_NOT_FOUND. The caller frees the text. */
int nft_list(struct nft *nft, const char *command, char **ret_text, struct error *err);

/* The "nftables" array that a list command gives in JSON, elements included. ERR_NOT_FOUND. */
int nft_query(struct nft *nft, const char *command, json_t **ret_array, struct error *err);

#endif
