#ifndef BOX_DOCTOR_LOOK_H
#define BOX_DOCTOR_LOOK_H

#include "doctor/doctor.h"
#include "stack/setup.h"

/* The parts of one examination, in the order in which they are run. Each appends to the findings and never fails: what
 * it cannot see is a finding too. */
struct look {
    struct client *client;       /* NULL: no daemon */
    const struct error *failure; /* why there is none */
    const struct doctor_options *options;
    struct setup_view view;
    struct findings findings;
};

/* The daemon, every row of the stack's table, and the ports of boxnet. */
void look_stack(struct look *look);

/* Who answers boxes: dnsmasq at the gateway, and the resolvers behind it. */
void look_stack_resolver(struct look *look);

/* The host around the stack: who else claims the subnet, room on the pool, ids, clock, VMs, images. */
void look_host(struct look *look);

/* What is left behind or off the contract, and what each running box itself reaches. */
void look_boxes(struct look *look);

#endif
