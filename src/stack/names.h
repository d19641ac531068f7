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

#endif
