// Counts a domain's UDP traffic, and lets its receive threads know when they have nothing more to
// do; see wire.c.
#ifndef PUBGAUGE_WIRE_H
#define PUBGAUGE_WIRE_H

#include "pubgauge.h"

struct ddsi_sertype;
struct pg_wire_hook;

// Begins to count. `type` must be registered with the domain. NULL if the library does not look
// as expected; then nothing was changed.
// `fleet` is the domain's.
struct pg_wire_hook *pg_wire_attach(const struct ddsi_sertype *type, struct pg_fleet *fleet);
void pg_wire_counters(const struct pg_wire_hook *hook, struct pg_wire *out);
// In a listener: whether this thread will wake the fleet itself, once its socket is empty.
bool pg_wire_defer(struct pg_fleet *fleet);

// In fleet.c: wakes the fleet's thread, if it sleeps; and whether it does.
void pg_fleet_wake(struct pg_fleet *fleet);
bool pg_fleet_sleeps(const struct pg_fleet *fleet);
// In fleet.c: a datagram has been dealt with, which may have been an acknowledgement.
void pg_fleet_heard(struct pg_fleet *fleet);

// After the domain is gone.
void pg_wire_free(struct pg_wire_hook *hook);

#endif
