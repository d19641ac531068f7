#ifndef BOX_STACK_NAMES_H
#define BOX_STACK_NAMES_H

/* The names of the stack on a host: the one place that defines them. */
#define STACK_NETWORK       "boxnet"
#define STACK_ACL           "box-isolate"
#define STACK_PROFILE       "box-net"
#define STACK_POOL          "default"
#define STACK_NFT_TABLE     "box" /* in the families inet, bridge and arp */
#define STACK_UNIT          "box-firewall.service"
#define STACK_GROUP         "incus-admin"
#define STACK_NIC           "eth0" /* the device of the profile, in containers and VMs alike */
#define STACK_RUN_DIRECTORY "/run/box"
#define STACK_DIRECTORY     "/var/lib/box"

/* Those of the older generation, which is read and removed only. */
#define OLDER_NETWORK   "claudenet" /* 10.87.0.0/24 */
#define OLDER_ACL       "claude-isolate"
#define OLDER_PROFILE   "claude-dev"
#define OLDER_NFT_TABLE "claudebox" /* in the families inet and bridge */
#define OLDER_UNIT      "claudebox-firewall.service"

#endif
