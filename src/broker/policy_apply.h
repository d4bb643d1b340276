/* SPDX-License-Identifier: Apache-2.0
 * The way of a change of policies to the objects that are there; for policy.c and vhost.c. */
#ifndef BROKER_POLICY_APPLY_H
#define BROKER_POLICY_APPLY_H

struct vhost;

/* All queues and exchanges of the vhost are looked at anew, in slices. */
void policies_changed(struct vhost *vh);
void policies_forget_vhost(struct vhost *vh);	/* it goes: nothing in it has to learn of them */

#endif
