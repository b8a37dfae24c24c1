// The shim between pubgauge's driver (src/ffi.rs) and Cyclone DDS: fleets, writers, readers.
//
// One fleet is used by one thread; Cyclone's own threads only run the listeners in fleet.c.
// Functions that can fail return a dds_return_t: negative on failure (dds_strretcode puts it in words).
// What needs no shim, src/ffi.rs calls in libddsc itself.
#ifndef PUBGAUGE_H
#define PUBGAUGE_H

#include <stdbool.h>
#include <stdint.h>

struct pg_fleet;
struct pg_reader;

// QoS policies that differ from Cyclone's defaults. Durations in ns, INT64_MAX for none.
struct pg_qos {
  int64_t lifespan_ns;
  int64_t deadline_ns;
  int64_t latency_budget_ns;
  // KEEP_LAST depth; 0 is KEEP_ALL.
  int32_t depth;
  // RESOURCE_LIMITS max_samples; 0 is no limit.
  int32_t max_samples;
  int32_t transport_priority;
  int32_t ownership_strength;
  bool reliable;
  bool transient_local;
  bool exclusive;
};

// A taken message. Valid until pg_release.
struct pg_sample {
  const uint8_t *payload;
  // Handle of the writer.
  uint64_t publication;
  // When it was written, ns of CLOCK_REALTIME.
  int64_t source_ns;
  uint32_t len;
  uint32_t device;
};

// UDP datagrams and their bytes, without IP and UDP headers; of the layout of `Traffic` in crates/dds.
struct pg_wire {
  uint64_t sent_bytes;
  uint64_t received_bytes;
  uint64_t sent_datagrams;
  uint64_t received_datagrams;
};

// Creates a domain of this process (`instance` must be unused in it), its participant and topic.
// While a reader has `limit` messages that are not taken, nothing is received (0: no limit).
// On failure returns NULL and says why in `why`.
struct pg_fleet *pg_fleet_open(uint32_t instance, const char *config, uint32_t limit, char *why,
                               uint32_t why_len);

// Deletes everything, waiting for Cyclone's threads.
void pg_fleet_close(struct pg_fleet *fleet);

// Whether pg_wire_read counts everything.
bool pg_wire_counts(const struct pg_fleet *fleet);
void pg_wire_read(const struct pg_fleet *fleet, struct pg_wire *out);

// Creates a publisher in `partition` with one writer; returns the writer's handle. max_blocking_time
// is 0: a write that would wait returns DDS_RETCODE_TIMEOUT.
int32_t pg_writer_new(struct pg_fleet *fleet, const char *partition, const struct pg_qos *qos);

// Deletes a writer and its publisher.
void pg_writer_free(struct pg_fleet *fleet, int32_t writer);

// What pg_write returns where malloc has nothing for the message; no code of Cyclone's.
#define PG_NO_MEMORY INT32_MIN

// Writes head + body as one message.
int32_t pg_write(struct pg_fleet *fleet, int32_t writer, uint32_t device, const uint8_t *head,
                 uint32_t head_len, const uint8_t *body, uint32_t body_len);

// Where to look for room in a writer's history; NULL if that cannot be known. Until pg_writer_free.
// See pg_has_room in room.h.
const void *pg_writer_history(struct pg_fleet *fleet, int32_t writer);

// While a writer is held back, pg_wait returns whenever something was received that may have made
// room, and pg_heard says so, once.
void pg_hold_back(struct pg_fleet *fleet, bool held_back);
bool pg_heard(struct pg_fleet *fleet);

// 0 once all matched reliable readers have acknowledged everything; waits `ns` at most.
int32_t pg_wait_for_acks(struct pg_fleet *fleet, int32_t writer, int64_t ns);

// Creates a subscriber in `partitions` with one reader, named `index` by pg_next_ready. With
// `names`, it remembers the partitions of its writers. NULL on failure, with *error set.
struct pg_reader *pg_reader_new(struct pg_fleet *fleet, uint32_t index, const char *const *partitions,
                                uint32_t n, bool names, const struct pg_qos *qos, int32_t *error);
void pg_reader_free(struct pg_fleet *fleet, struct pg_reader *reader);

// Takes up to `max` messages (at most 64). Returns how many messages are in `out`; `held` keeps
// *n_held references for pg_release, which may be more.
int32_t pg_take(struct pg_reader *reader, struct pg_sample *out, void **held, uint32_t max,
                uint32_t *n_held);
void pg_release(void **held, uint32_t n_held);

// The first partition of a writer that matched this reader, into `out` without a zero at its end.
// Returns its length, or -1 if it is unknown or longer than `len`.
int32_t pg_partition_of(struct pg_reader *reader, uint64_t publication, char *out, uint32_t len);

// Deadlines that writers of this reader have missed.
uint32_t pg_deadlines_missed(const struct pg_reader *reader);
// Writers that did not match because of their QoS.
uint32_t pg_incompatible(const struct pg_reader *reader);

// The index of a reader that has got something since it was last named here, or -1.
int64_t pg_next_ready(struct pg_fleet *fleet);
// Whether there is one.
bool pg_has_ready(const struct pg_fleet *fleet);

// Sleeps until a reader is ready, or until `until_ns` of CLOCK_MONOTONIC.
void pg_wait(struct pg_fleet *fleet, uint64_t until_ns);

const char *pg_version(void);
// DDS_RETCODE_TIMEOUT.
int32_t pg_timeout(void);

#endif
