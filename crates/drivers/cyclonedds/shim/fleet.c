// A fleet: one Cyclone domain of its own, with its threads and sockets, so that the fleets of one
// process speak to each other over the network as processes do. (Within one domain, Cyclone hands
// messages over in memory, which is not what is to be measured.)

#include "pubgauge.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "dds/dds.h"
#include "dds/ddsrt/log.h"
#include "dds/version.h"
#include "message.h"
#include "names.h"
#include "room.h"
#include "wire.h"

#define TOPIC "pubgauge"
#define MOST 64u

struct pg_fleet {
  dds_entity_t domain;
  dds_entity_t participant;
  dds_entity_t topic;
  const struct ddsi_sertype *type;
  struct pg_wire_hook *wire;
  // Readers with something to take: pushed by Cyclone's threads, taken off all at once.
  _Atomic(struct pg_reader *) ready;
  // Those taken off and not named yet. The fleet's thread only.
  struct pg_reader *named;
  // 1 while the fleet's thread sleeps on this word.
  _Atomic uint32_t sleeping;
  // Whether a writer waits for room, and whether something has come since that may have made it.
  _Atomic bool held_back;
  _Atomic bool heard;

  // How Cyclone's receive thread is held back: see make_room.
  uint32_t limit;
  pthread_t owner;
  _Atomic uint32_t let_in;
  _Atomic uint32_t stalled;
  _Atomic uint32_t turns;
};

struct pg_reader {
  dds_entity_t subscriber;
  _Atomic(dds_entity_t) reader; // on_matched sets it as well
  struct pg_fleet *fleet;
  uint32_t index;
  _Atomic uint32_t queued;
  // Messages in the cache, nearly.
  _Atomic uint32_t untaken;
  struct pg_reader *next;
  _Atomic uint32_t deadlines_missed;
  _Atomic uint32_t incompatible;
  bool names;
  struct pg_names writers;
};

// Cyclone says why it does not start in its log only, which otherwise goes to standard error.
static struct {
  pthread_mutex_t lock;
  char last[160];
} said = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void listen_to_log(void *arg, const dds_log_data_t *data) {
  (void)arg;
  size_t len = strcspn(data->message, "\n");
  snprintf(said.last, sizeof said.last, "%.*s", (int)len, data->message);
}

static void complain(char *why, uint32_t len, const char *what, dds_return_t code) {
  snprintf(why, len, "%s: %s%s%s", what, dds_strretcode(code), said.last[0] ? ": " : "",
           said.last);
}

static struct pg_fleet *fleet_open(uint32_t instance, const char *config, uint32_t limit, char *why,
                                   uint32_t why_len) {
  if (!pg_message_layout_matches()) {
    snprintf(why, why_len, "libddsc was built with other features than the headers say that the "
             "driver was compiled with");
    return NULL;
  }
  struct pg_fleet *f = calloc(1, sizeof *f);
  if (f == NULL) {
    snprintf(why, why_len, "out of memory");
    return NULL;
  }
  f->limit = limit;
  f->owner = pthread_self();
  f->domain = dds_create_domain(instance, config);
  if (f->domain < 0) {
    complain(why, why_len, "cannot create a domain", f->domain);
    free(f);
    return NULL;
  }
  f->participant = dds_create_participant(instance, NULL, NULL);
  if (f->participant < 0) {
    complain(why, why_len, "cannot create a participant", f->participant);
    goto fail;
  }
  struct ddsi_sertype *type = pg_message_type();
  f->topic = dds_create_topic_sertype(f->participant, TOPIC, &type, NULL, NULL, NULL);
  if (f->topic < 0) {
    complain(why, why_len, "cannot create the topic", f->topic);
    ddsi_sertype_unref(type);
    goto fail;
  }
  f->type = type;
  f->wire = pg_wire_attach(type, f);
  return f;
fail:
  dds_delete(f->domain);
  free(f);
  return NULL;
}

// What Cyclone logs later tells of what the trial counts anyway, and standard error is pubgauge's own.
static void ignore_log(void *arg, const dds_log_data_t *data) {
  (void)arg;
  (void)data;
}

struct pg_fleet *pg_fleet_open(uint32_t instance, const char *config, uint32_t limit, char *why,
                               uint32_t why_len) {
  pthread_mutex_lock(&said.lock);
  said.last[0] = 0;
  dds_set_log_sink(listen_to_log, NULL);
  struct pg_fleet *f = fleet_open(instance, config, limit, why, why_len);
  dds_set_log_sink(ignore_log, NULL);
  pthread_mutex_unlock(&said.lock);
  return f;
}

// Readers are full: lets the thread wait that brought a message, which is Cyclone's receive
// thread. The socket fills, and reliable writers are held back.
//
// RESOURCE_LIMITS would be DDS's own way, but where one of several readers is full, Cyclone 0.10
// delivers the message again to all of them (deliver_locally_fastpath begins anew). So the limit is
// kept here, a message late.
static void make_room(struct pg_fleet *f, struct pg_reader *r) {
  // Messages between clients of one fleet come on its own thread, which must not wait for itself.
  if (f->limit == 0 || pthread_equal(pthread_self(), f->owner))
    return;
  // At most a second: without a receive thread, leases run out.
  const struct timespec patience = {.tv_sec = 0, .tv_nsec = 100000000};
  for (int i = 0; i < 10; i++) {
    uint32_t turn = atomic_load(&f->turns);
    atomic_store(&f->stalled, 1);
    if (atomic_load(&r->untaken) < f->limit || atomic_load(&f->let_in) != 0)
      return;
    syscall(SYS_futex, &f->turns, FUTEX_WAIT_PRIVATE, turn, &patience, NULL, 0);
  }
}

static void end_stall(struct pg_fleet *f) {
  if (atomic_load(&f->stalled) == 0)
    return;
  atomic_store(&f->stalled, 0);
  atomic_fetch_add(&f->turns, 1);
  syscall(SYS_futex, &f->turns, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

// While the fleet's thread is in a call that may wait for Cyclone's, those must not wait for it.
static void let_in(struct pg_fleet *f) {
  atomic_fetch_add(&f->let_in, 1);
  end_stall(f);
}

static void keep_out(struct pg_fleet *f) {
  atomic_fetch_sub(&f->let_in, 1);
}

void pg_fleet_close(struct pg_fleet *f) {
  let_in(f);
  dds_delete(f->domain);
  pg_wire_free(f->wire);
  free(f);
}

bool pg_wire_counts(const struct pg_fleet *f) {
  return f->wire != NULL;
}

void pg_wire_read(const struct pg_fleet *f, struct pg_wire *out) {
  memset(out, 0, sizeof *out);
  if (f->wire != NULL)
    pg_wire_counters(f->wire, out);
}

static dds_qos_t *qos_of(const struct pg_qos *q) {
  dds_qos_t *qos = dds_create_qos();
  dds_qset_reliability(qos, q->reliable ? DDS_RELIABILITY_RELIABLE : DDS_RELIABILITY_BEST_EFFORT, 0);
  dds_qset_history(qos, q->depth == 0 ? DDS_HISTORY_KEEP_ALL : DDS_HISTORY_KEEP_LAST,
                   q->depth == 0 ? 1 : q->depth);
  if (q->max_samples > 0)
    dds_qset_resource_limits(qos, q->max_samples, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED);
  if (q->transient_local) {
    dds_qset_durability(qos, DDS_DURABILITY_TRANSIENT_LOCAL);
    // How much is kept for late readers: the last message of each device, whatever the depth for
    // those that are there.
    dds_qset_durability_service(qos, 0, DDS_HISTORY_KEEP_LAST, 1, DDS_LENGTH_UNLIMITED,
                                DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED);
  }
  if (q->deadline_ns != INT64_MAX)
    dds_qset_deadline(qos, q->deadline_ns);
  if (q->latency_budget_ns != INT64_MAX)
    dds_qset_latency_budget(qos, q->latency_budget_ns);
  if (q->exclusive)
    dds_qset_ownership(qos, DDS_OWNERSHIP_EXCLUSIVE);
  return qos;
}

static dds_entity_t writer_new(struct pg_fleet *f, const char *partition, const struct pg_qos *q) {
  dds_qos_t *group = dds_create_qos();
  dds_qset_partition1(group, partition);
  dds_entity_t publisher = dds_create_publisher(f->participant, group, NULL);
  dds_delete_qos(group);
  if (publisher < 0)
    return publisher;
  dds_qos_t *qos = qos_of(q);
  if (q->lifespan_ns != INT64_MAX)
    dds_qset_lifespan(qos, q->lifespan_ns);
  if (q->transport_priority != 0)
    dds_qset_transport_priority(qos, q->transport_priority);
  if (q->exclusive)
    dds_qset_ownership_strength(qos, q->ownership_strength);
  dds_entity_t writer = dds_create_writer(publisher, f->topic, qos, NULL);
  dds_delete_qos(qos);
  if (writer < 0)
    dds_delete(publisher);
  return writer;
}

int32_t pg_writer_new(struct pg_fleet *f, const char *partition, const struct pg_qos *q) {
  let_in(f);
  dds_entity_t writer = writer_new(f, partition, q);
  keep_out(f);
  return writer;
}

void pg_writer_free(struct pg_fleet *f, int32_t writer) {
  let_in(f);
  dds_entity_t publisher = dds_get_parent(writer);
  dds_delete(writer);
  if (publisher > 0)
    dds_delete(publisher);
  keep_out(f);
}

int32_t pg_write(struct pg_fleet *f, int32_t writer, uint32_t device, const uint8_t *head,
                 uint32_t head_len, const uint8_t *body, uint32_t body_len) {
  struct ddsi_serdata *d = pg_message_new(f->type, device, head, head_len, body, body_len);
  if (d == NULL)
    return PG_NO_MEMORY;
  return dds_writecdr(writer, d);
}

int32_t pg_wait_for_acks(struct pg_fleet *f, int32_t writer, int64_t ns) {
  let_in(f);
  dds_return_t r = dds_wait_for_acks(writer, ns);
  keep_out(f);
  return r;
}

static void push(struct pg_fleet *f, struct pg_reader *r) {
  struct pg_reader *head = atomic_load_explicit(&f->ready, memory_order_relaxed);
  do
    r->next = head;
  while (!atomic_compare_exchange_weak(&f->ready, &head, r));
}

void pg_fleet_wake(struct pg_fleet *f) {
  if (atomic_exchange(&f->sleeping, 0) == 1)
    syscall(SYS_futex, &f->sleeping, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

bool pg_fleet_sleeps(const struct pg_fleet *f) {
  return atomic_load(&((struct pg_fleet *)f)->sleeping) == 1;
}

void pg_fleet_heard(struct pg_fleet *f) {
  if (!atomic_load(&f->held_back))
    return;
  atomic_store(&f->heard, true);
  if (pg_fleet_sleeps(f))
    pg_fleet_wake(f);
}

void pg_hold_back(struct pg_fleet *f, bool held_back) {
  atomic_store(&f->held_back, held_back);
}

bool pg_heard(struct pg_fleet *f) {
  return atomic_load(&f->heard) && atomic_exchange(&f->heard, false);
}

const void *pg_writer_history(struct pg_fleet *f, int32_t writer) {
  return pg_room_find(f->type, writer);
}

static void on_data(dds_entity_t reader, void *arg) {
  (void)reader;
  struct pg_reader *r = arg;
  struct pg_fleet *f = r->fleet;
  uint32_t untaken = atomic_fetch_add(&r->untaken, 1) + 1;
  // The message is in the reader's cache by now. Whoever finds the flag down queues the reader;
  // pg_next_ready lowers it before the cache is emptied.
  if (atomic_exchange(&r->queued, 1) == 0) {
    push(f, r);
    // To wake a thread costs more than to receive a message: a receive thread looks first whether
    // there is more for it (wire.c).
    if (!pg_wire_defer(f))
      pg_fleet_wake(f);
  }
  if (f->limit > 0 && untaken >= f->limit) {
    pg_fleet_wake(f);
    make_room(f, r);
  }
}

static void on_matched(dds_entity_t reader, const dds_subscription_matched_status_t status,
                       void *arg) {
  struct pg_reader *r = arg;
  if (status.current_count_change > 0) {
    r->reader = reader; // It may match before dds_create_reader has returned.
    pg_names_learn(&r->writers, reader, status.last_publication_handle);
  } else {
    pg_names_gone(&r->writers, status.last_publication_handle);
  }
}

static void on_deadline(dds_entity_t reader, const dds_requested_deadline_missed_status_t status,
                        void *arg) {
  (void)reader;
  atomic_store(&((struct pg_reader *)arg)->deadlines_missed, status.total_count);
}

static void on_incompatible(dds_entity_t reader,
                            const dds_requested_incompatible_qos_status_t status, void *arg) {
  (void)reader;
  struct pg_reader *r = arg;
  atomic_store(&r->incompatible, status.total_count);
}

struct pg_reader *pg_reader_new(struct pg_fleet *f, uint32_t index, const char *const *partitions,
                                uint32_t n, bool names, const struct pg_qos *q, int32_t *error) {
  *error = DDS_RETCODE_OUT_OF_RESOURCES;
  struct pg_reader *r = calloc(1, sizeof *r);
  if (r == NULL)
    return NULL;
  let_in(f);
  r->fleet = f;
  r->index = index;
  r->names = names;
  pg_names_init(&r->writers);
  dds_qos_t *group = dds_create_qos();
  dds_qset_partition(group, n, (const char **)partitions);
  r->subscriber = dds_create_subscriber(f->participant, group, NULL);
  dds_delete_qos(group);
  if (r->subscriber < 0) {
    *error = r->subscriber;
    goto fail;
  }
  dds_listener_t *listener = dds_create_listener(r);
  dds_lset_data_available(listener, on_data);
  dds_lset_requested_incompatible_qos(listener, on_incompatible);
  if (q->deadline_ns != INT64_MAX)
    dds_lset_requested_deadline_missed(listener, on_deadline);
  if (names)
    dds_lset_subscription_matched(listener, on_matched);
  dds_qos_t *qos = qos_of(q);
  r->reader = dds_create_reader(r->subscriber, f->topic, qos, listener);
  dds_delete_qos(qos);
  dds_delete_listener(listener);
  if (r->reader < 0) {
    *error = r->reader;
    dds_delete(r->subscriber);
    goto fail;
  }
  keep_out(f);
  *error = 0;
  return r;
fail:
  keep_out(f);
  pg_names_fini(&r->writers);
  free(r);
  return NULL;
}

void pg_reader_free(struct pg_fleet *f, struct pg_reader *r) {
  let_in(f);
  dds_delete(r->reader); // Returns when no listener runs any more.
  dds_delete(r->subscriber);
  keep_out(f);
  // It may stand in the queue: take all off, put the others back in their order.
  struct pg_reader *all = NULL;
  for (struct pg_reader *n = atomic_exchange(&f->ready, NULL), *next; n != NULL; n = next) {
    next = n->next;
    n->next = all;
    all = n;
  }
  struct pg_reader **end = &f->named;
  while (*end != NULL)
    end = &(*end)->next;
  *end = all;
  for (struct pg_reader **at = &f->named; *at != NULL;)
    if (*at == r)
      *at = r->next;
    else
      at = &(*at)->next;
  pg_names_fini(&r->writers);
  free(r);
}

int32_t pg_take(struct pg_reader *r, struct pg_sample *out, void **held, uint32_t max,
                uint32_t *n_held) {
  dds_sample_info_t info[MOST];
  *n_held = 0;
  if (max > MOST)
    max = MOST;
  dds_return_t n = dds_takecdr(r->reader, (struct ddsi_serdata **)held, max, info, DDS_ANY_STATE);
  if (n < 0 && n != DDS_RETCODE_NO_DATA)
    return n;
  if (n < (dds_return_t)max)
    atomic_store(&r->untaken, 0); // Empty: what was miscounted is put right.
  else
    atomic_fetch_sub(&r->untaken, (uint32_t)n);
  end_stall(r->fleet);
  if (n <= 0)
    return 0;
  *n_held = (uint32_t)n;
  int32_t count = 0;
  for (dds_return_t i = 0; i < n; i++) {
    if (!info[i].valid_data)
      continue; // Only says that a writer has gone.
    const struct pg_message *m = held[i];
    out[count++] = (struct pg_sample){
      .payload = m->cdr + PG_HEAD,
      .publication = info[i].publication_handle,
      .source_ns = info[i].source_timestamp,
      .len = m->payload_len,
      .device = m->device,
    };
  }
  return count;
}

void pg_release(void **held, uint32_t n_held) {
  for (uint32_t i = 0; i < n_held; i++)
    ddsi_serdata_unref(held[i]);
}

int32_t pg_partition_of(struct pg_reader *r, uint64_t publication, char *out, uint32_t len) {
  int32_t found = pg_names_find(&r->writers, publication, out, len);
  if (found < 0) {
    // A message may come before Cyclone's discovery thread has told on_matched of its writer.
    pg_names_learn(&r->writers, r->reader, publication);
    found = pg_names_find(&r->writers, publication, out, len);
  }
  return found;
}

uint32_t pg_deadlines_missed(const struct pg_reader *r) {
  return atomic_load(&((struct pg_reader *)r)->deadlines_missed);
}

uint32_t pg_incompatible(const struct pg_reader *r) {
  return atomic_load(&((struct pg_reader *)r)->incompatible);
}

int64_t pg_next_ready(struct pg_fleet *f) {
  if (f->named == NULL) {
    if (atomic_load_explicit(&f->ready, memory_order_relaxed) == NULL)
      return -1;
    // Newest first: turn them round.
    for (struct pg_reader *n = atomic_exchange(&f->ready, NULL), *next; n != NULL; n = next) {
      next = n->next;
      n->next = f->named;
      f->named = n;
    }
  }
  struct pg_reader *r = f->named;
  f->named = r->next;
  atomic_exchange(&r->queued, 0);
  return r->index;
}

bool pg_has_ready(const struct pg_fleet *fleet) {
  struct pg_fleet *f = (struct pg_fleet *)fleet;
  return f->named != NULL || atomic_load_explicit(&f->ready, memory_order_acquire) != NULL;
}

void pg_wait(struct pg_fleet *f, uint64_t until_ns) {
  if (f->named != NULL)
    return;
  atomic_store(&f->sleeping, 1);
  // Only the fleet's own thread writes held_back; heard may be left over.
  bool look = atomic_load(&f->held_back) && atomic_load(&f->heard);
  if (atomic_load(&f->ready) == NULL && !look) {
    struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000u),
                             .tv_nsec = (long)(until_ns % 1000000000u)};
    // The bitset form takes a point in time of CLOCK_MONOTONIC. Woken, timed out, interrupted or
    // too late to sleep: the caller looks again in any case.
    syscall(SYS_futex, &f->sleeping, FUTEX_WAIT_BITSET_PRIVATE, 1, &until, NULL,
            FUTEX_BITSET_MATCH_ANY);
  }
  atomic_store(&f->sleeping, 0);
}

const char *pg_version(void) {
  return DDS_VERSION;
}

int32_t pg_timeout(void) {
  return DDS_RETCODE_TIMEOUT;
}
