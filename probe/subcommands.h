#pragma once

#include "request.h"

/* The rows of the table in boxprobe.c, each beside its function in the file of its name. */
extern const struct subcommand subcommand_connect;
extern const struct subcommand subcommand_udp;
extern const struct subcommand subcommand_icmp;
extern const struct subcommand subcommand_icmp_error;
extern const struct subcommand subcommand_protocols;
extern const struct subcommand subcommand_arp;
extern const struct subcommand subcommand_dns;
extern const struct subcommand subcommand_resolve;
extern const struct subcommand subcommand_dhcp;
extern const struct subcommand subcommand_ipv6;
extern const struct subcommand subcommand_raw;
extern const struct subcommand subcommand_spoof;
extern const struct subcommand subcommand_multicast;
extern const struct subcommand subcommand_flows;
extern const struct subcommand subcommand_listen;
extern const struct subcommand subcommand_interfaces;
extern const struct subcommand subcommand_routes;
extern const struct subcommand subcommand_identity;
