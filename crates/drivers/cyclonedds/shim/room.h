// Whether a writer that was held back would be taken from again.
#ifndef PUBGAUGE_ROOM_H
#define PUBGAUGE_ROOM_H

#include <stdint.h>

#include "dds/dds.h"
#include "dds/ddsi/ddsi_sertype.h"

struct ddsi_writer;

// What is behind a writer's handle; NULL if it is not as expected. Valid until the writer is
// deleted.
const struct ddsi_writer *pg_room_find(const struct ddsi_sertype *type, dds_entity_t writer);

// Whether a write would be taken. Called by src/ffi.rs.
bool pg_has_room(const struct ddsi_writer *writer);

#endif
