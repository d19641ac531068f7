#ifndef BOX_DRILL_NESTED_H
#define BOX_DRILL_NESTED_H

struct trial;

/* The claim that Docker in a box runs a container that has the box's network, and meets the box's walls. The image is
 * the instrument itself. A box has no Docker of its own: NOT JUDGED, unless $BOX_DRILL_DOCKER is set; then it is
 * installed in the box from the archive that the box uses (some 80 MB). */
void nested_claim(struct trial *trial);

#endif
