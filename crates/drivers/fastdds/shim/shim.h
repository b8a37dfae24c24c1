/* The C face of the Fast DDS shim: what src/ffi.rs sees. No call but pgf_close,
 * pgf_writer_delete and pgf_sleep waits. All calls on one participant come from one thread. */
#ifndef PUBGAUGE_FASTDDS_SHIM_H
#define PUBGAUGE_FASTDDS_SHIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Same layout as `Config` in src/ffi.rs. Negative: the library's own default, where said. */
typedef struct {
    uint32_t domain;
    uint32_t peers;                /* participant ids tried at each host in discovery */
    uint32_t transport;            /* 0 UDP, 1 shared memory */
    uint32_t multicast;            /* readers announce a multicast address */
    uint32_t intraprocess;         /* for the whole process */
    uint32_t max_payload;          /* bytes */
    int32_t send_buffer_bytes;     /* negative: default */
    int32_t receive_buffer_bytes;  /* negative: default */
    int32_t max_message_bytes;     /* largest RTPS message; negative: default */
    int32_t multicast_hops;        /* TTL of multicast datagrams; negative: default */
    uint32_t reliable;
    uint32_t reader_transient_local;
    uint32_t writer_transient_local;
    uint32_t asynchronous;
    uint32_t piggyback;
    uint32_t data_sharing;
    int32_t writer_depth;          /* keep last so many; 0: keep all */
    int32_t reader_depth;          /* the same */
    int32_t writer_samples;        /* max_samples of a writer */
    int32_t reader_samples;        /* max_samples_per_instance (publisher) of a reader */
    int64_t heartbeat_ns;          /* negative: default */
    int64_t nack_response_ns;      /* negative: default */
    int64_t heartbeat_response_ns; /* negative: default */
    int64_t lifespan_ns;           /* negative: none */
    uint32_t flow_bytes_per_period; /* 0: no limit */
    uint32_t flow_period_ms;
    int32_t flow_scheduler;        /* negative: no flow controller; else FlowControllerSchedulerPolicy */
    uint32_t own_host;             /* IPv4 address whose interface is used, first octet highest */
    uint32_t hosts;                /* how many of `host` are looked at in discovery */
    uint32_t host[256];            /* their addresses */
} pgf_config;

/* A sample that was taken; the data stays valid until the next pgf_take of the participant. */
typedef struct {
    const uint8_t *data;
    size_t len;
    int64_t source_ns;             /* the writer's clock (CLOCK_REALTIME) */
} pgf_sample;

/* Same layout as `Traffic` in crates/dds. */
typedef struct {
    uint64_t sent_bytes, received_bytes, sent_datagrams, received_datagrams;
} pgf_traffic;

typedef struct pgf_participant pgf_participant;
typedef struct pgf_writer pgf_writer;
typedef struct pgf_reader pgf_reader;

/* NULL on failure, with words in `error`. */
/* *no_ports: whether no participant finds two UDP ports in the domain any more. */
pgf_participant *pgf_open(const pgf_config *config, char *error, size_t error_len, int *no_ports);
void pgf_close(pgf_participant *p);
void pgf_traffic_read(const pgf_participant *p, pgf_traffic *out);

/* Sleeps for at most `ns`, until a reader gets data and, if `arrivals` is not negative, until more
 * datagrams than so many have arrived, because one may hold the acknowledgement that makes room.
 * Returns at once if that has happened already, and early after a signal. */
void pgf_sleep(pgf_participant *p, int64_t arrivals, int64_t ns);
/* Datagrams that have arrived and been handled, for pgf_sleep. */
int64_t pgf_arrivals(const pgf_participant *p);

/* Moves the numbers of readers that have got data since into `out`; returns how many. */
size_t pgf_ready(pgf_participant *p, uint32_t *out, size_t len);

/* `priority`: fastdds.sfc.priority, -10 (first) to 10 (last); 127: none. */
pgf_writer *pgf_writer_create(pgf_participant *p, const char *partition, uint32_t device,
                              int32_t priority, char *error, size_t error_len);
/* 0 written; 1 no room now; 2 failed. */
int pgf_write(pgf_writer *w, const uint8_t *head, size_t head_len, const uint8_t *body,
              size_t body_len);
/* Whether every matched reader has acknowledged everything. */
int pgf_writer_settled(pgf_writer *w);
/* Waits at most `wait_ns` for acknowledgements, then deletes. */
void pgf_writer_delete(pgf_writer *w, int64_t wait_ns);

pgf_reader *pgf_reader_create(pgf_participant *p, uint32_t number, const char *const *partitions,
                              size_t count, char *error, size_t error_len);
/* 0 on success. */
int pgf_reader_partitions(pgf_reader *r, const char *const *partitions, size_t count);
/* Takes up to `max` (64 at most) samples; returns how many have data, or -1. *more: whether there
 * may be others; if not, pgf_ready will name the reader when one comes. */
int pgf_take(pgf_reader *r, pgf_sample *out, int max, int *more);
void pgf_reader_delete(pgf_reader *r);

#ifdef __cplusplus
}
#endif
#endif
