// Counts a domain's UDP traffic; see wire.c.
#ifndef PUBGAUGE_WIRE_H
#define PUBGAUGE_WIRE_H

#include "pubgauge.h"

struct ddsi_sertype;
struct pg_wire_hook;

// Begins to count. `type` must be registered with the domain. NULL if the library does not look
// as expected; then nothing was changed.
struct pg_wire_hook *pg_wire_attach(const struct ddsi_sertype *type);
void pg_wire_counters(const struct pg_wire_hook *hook, struct pg_wire *out);
// After the domain is gone.
void pg_wire_free(struct pg_wire_hook *hook);

#endif
