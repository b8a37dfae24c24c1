// The writers that a reader has matched, and their partitions.
#ifndef PUBGAUGE_NAMES_H
#define PUBGAUGE_NAMES_H

#include <pthread.h>
#include <stdint.h>

#include "dds/dds.h"

struct known_writer;

// Used by Cyclone's discovery threads and the fleet's.
struct pg_names {
  pthread_mutex_t lock;
  struct known_writer *writers;
  uint32_t n, room, n_gone;
};

void pg_names_init(struct pg_names *names);
void pg_names_fini(struct pg_names *names);

// Remembers the first partition of a writer that `reader` matches at present.
void pg_names_learn(struct pg_names *names, dds_entity_t reader, uint64_t publication);

// A writer matches no more. It is remembered for a while: its messages may still be queued.
void pg_names_gone(struct pg_names *names, uint64_t publication);

// The partition of a writer, without a zero at its end. Returns its length, or -1 if it is unknown
// or longer than `len`.
int32_t pg_names_find(struct pg_names *names, uint64_t publication, char *out, uint32_t len);

#endif
