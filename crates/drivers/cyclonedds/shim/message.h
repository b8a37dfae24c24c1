// The type `pubgauge::Message` for Cyclone DDS: see message.idl.
#ifndef PUBGAUGE_MESSAGE_H
#define PUBGAUGE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dds/ddsi/ddsi_serdata.h"
#include "dds/ddsi/ddsi_sertype.h"

// Bytes before the payload: encapsulation header, device, length.
#define PG_HEAD 12u

// A message, or only its key. Allocated in one piece with its CDR.
struct pg_message {
  struct ddsi_serdata c;
  uint32_t device;
  // Bytes of CDR, encapsulation header included.
  uint32_t size;
  uint32_t payload_len;
  // 4-byte aligned, with room up to the next multiple of 4.
  uint8_t cdr[];
};

// A new type, not registered yet; dds_create_topic_sertype takes it over.
struct ddsi_sertype *pg_message_type(void);

// A message with the payload head + body. NULL if memory is short.
struct ddsi_serdata *pg_message_new(const struct ddsi_sertype *type, uint32_t device,
                                    const uint8_t *head, size_t head_len, const uint8_t *body,
                                    size_t body_len);

// Checks CDR that came from the network: known encapsulation, whole key, a length within the
// bytes that are there. False means that nothing was stored.
bool pg_message_parse(const uint8_t *cdr, size_t size, bool key_only, uint32_t *device,
                      uint32_t *payload_len);

// Whether libddsc lays out its serdata as this shim was compiled to.
bool pg_message_layout_matches(void);

#endif
