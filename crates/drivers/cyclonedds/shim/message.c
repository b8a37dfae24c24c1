// The type `pubgauge::Message` for Cyclone DDS 0.10: a sertype whose samples stay in CDR from the
// application's buffer to the socket and back, with one copy on each side.

#include "message.h"

#include <stdio.h>
#include <string.h>

#include "dds/ddsi/ddsi_keyhash.h"
#include "dds/ddsi/q_radmin.h"
#include "dds/ddsrt/heap.h"
#include "dds/ddsrt/md5.h"
#include "dds/version.h"
#include "pool.h"

#if DDS_VERSION_MAJOR != 0 || DDS_VERSION_MINOR != 10
#error "this shim is written for the sertype interface of Cyclone DDS 0.10"
#endif
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "this shim writes little-endian CDR from memory and needs a little-endian host"
#endif

static const uint8_t ENCAPSULATION[4] = {0, 1, 0, 0};

static uint32_t load(const uint8_t *p, bool big_endian) {
  uint32_t v;
  memcpy(&v, p, 4);
  return big_endian ? __builtin_bswap32(v) : v;
}

bool pg_message_parse(const uint8_t *cdr, size_t size, bool key_only, uint32_t *device,
                      uint32_t *payload_len) {
  if (size < 8 || cdr[0] != 0)
    return false;
  bool big_endian;
  switch (cdr[1]) {
    // For this type XCDR1 (0, 1) and plain XCDR2 (6, 7) are the same bytes.
    case 0: case 6: big_endian = true; break;
    case 1: case 7: big_endian = false; break;
    default: return false;
  }
  uint32_t len = 0;
  if (!key_only) {
    if (size < PG_HEAD)
      return false;
    len = load(cdr + 8, big_endian);
    if (len > size - PG_HEAD)
      return false;
  }
  *device = load(cdr + 4, big_endian);
  *payload_len = len;
  return true;
}

static size_t room_for(size_t size) {
  return sizeof(struct pg_message) + ((size + 3) & ~(size_t)3);
}

static struct pg_message *allocate(const struct ddsi_sertype *type, enum ddsi_serdata_kind kind,
                                   size_t size) {
  if (size > UINT32_MAX - 4)
    return NULL;
  struct pg_message *m = pg_pool_get(room_for(size));
  if (m == NULL)
    return NULL;
  ddsi_serdata_init(&m->c, type, kind);
  m->size = (uint32_t)size;
  m->payload_len = 0;
  return m;
}

static void release(struct pg_message *m) {
  pg_pool_put(m, room_for(m->size));
}

static void set_device(struct pg_message *m, const struct ddsi_sertype *type, uint32_t device) {
  m->device = device;
  // Fibonacci hashing: devices are numbered one by one, the table takes its low bits.
  uint32_t mixed = device * 0x9e3779b1u;
  m->c.hash = type->serdata_basehash ^ (mixed ^ (mixed >> 15));
}

static struct pg_message *key_of(const struct ddsi_sertype *type, uint32_t device) {
  struct pg_message *m = allocate(type, SDK_KEY, 8);
  if (m == NULL)
    return NULL;
  set_device(m, type, device);
  memcpy(m->cdr, ENCAPSULATION, 4);
  memcpy(m->cdr + 4, &device, 4);
  return m;
}

struct ddsi_serdata *pg_message_new(const struct ddsi_sertype *type, uint32_t device,
                                    const uint8_t *head, size_t head_len, const uint8_t *body,
                                    size_t body_len) {
  size_t len = head_len + body_len;
  if (len > INT32_MAX - PG_HEAD)
    return NULL;
  struct pg_message *m = allocate(type, SDK_DATA, PG_HEAD + len);
  if (m == NULL)
    return NULL;
  set_device(m, type, device);
  m->payload_len = (uint32_t)len;
  memcpy(m->cdr, ENCAPSULATION, 4);
  memcpy(m->cdr + 4, &device, 4);
  memcpy(m->cdr + 8, &m->payload_len, 4);
  memcpy(m->cdr + PG_HEAD, head, head_len);
  memcpy(m->cdr + PG_HEAD + head_len, body, body_len);
  // Up to three bytes of padding go out as well: never those of some other memory.
  memset(m->cdr + m->size, 0, (4 - (m->size & 3)) & 3);
  return &m->c;
}

// What came from the network, `filled` bytes of it, is checked once, here; NULL makes Cyclone drop it
// with a warning.
static struct ddsi_serdata *checked(struct pg_message *m, const struct ddsi_sertype *type,
                                    size_t filled) {
  uint32_t device, len;
  if (filled != m->size ||
      !pg_message_parse(m->cdr, m->size, m->c.kind == SDK_KEY, &device, &len)) {
    release(m);
    return NULL;
  }
  set_device(m, type, device);
  m->payload_len = len;
  return &m->c;
}

static bool message_eqkey(const struct ddsi_serdata *a, const struct ddsi_serdata *b) {
  return ((const struct pg_message *)a)->device == ((const struct pg_message *)b)->device;
}

static uint32_t message_size(const struct ddsi_serdata *d) {
  return ((const struct pg_message *)d)->size;
}

static struct ddsi_serdata *message_from_ser(const struct ddsi_sertype *type,
                                             enum ddsi_serdata_kind kind,
                                             const struct nn_rdata *fragment, size_t size) {
  struct pg_message *m = allocate(type, kind, size);
  if (m == NULL)
    return NULL;
  uint32_t off = 0;
  for (; fragment != NULL; fragment = fragment->nextfrag) {
    // Fragments come in order and may overlap.
    if (fragment->maxp1 <= off)
      continue;
    uint32_t end = fragment->maxp1 < size ? fragment->maxp1 : (uint32_t)size;
    if (fragment->min > off || end <= off)
      break;
    const unsigned char *payload =
        NN_RMSG_PAYLOADOFF(fragment->rmsg, NN_RDATA_PAYLOAD_OFF(fragment));
    memcpy(m->cdr + off, payload + (off - fragment->min), end - off);
    off = end;
  }
  return checked(m, type, off);
}

static struct ddsi_serdata *message_from_ser_iov(const struct ddsi_sertype *type,
                                                 enum ddsi_serdata_kind kind,
                                                 ddsrt_msg_iovlen_t niov,
                                                 const ddsrt_iovec_t *iov, size_t size) {
  struct pg_message *m = allocate(type, kind, size);
  if (m == NULL)
    return NULL;
  size_t off = 0;
  for (ddsrt_msg_iovlen_t i = 0; i < niov && off < size; i++) {
    size_t n = iov[i].iov_len < size - off ? iov[i].iov_len : size - off;
    memcpy(m->cdr + off, iov[i].iov_base, n);
    off += n;
  }
  return checked(m, type, off);
}

// A 4-byte key is its own hash, big-endian, padded with zeros (DDSI-RTPS 2.3, section 9.6.3.8).
static struct ddsi_serdata *message_from_keyhash(const struct ddsi_sertype *type,
                                                 const struct ddsi_keyhash *keyhash) {
  struct pg_message *m = key_of(type, load((const uint8_t *)keyhash->value, true));
  return m == NULL ? NULL : &m->c;
}

static void message_get_keyhash(const struct ddsi_serdata *d, struct ddsi_keyhash *out,
                                bool force_md5) {
  uint32_t key = __builtin_bswap32(((const struct pg_message *)d)->device);
  if (force_md5) {
    ddsrt_md5_state_t md5;
    ddsrt_md5_init(&md5);
    ddsrt_md5_append(&md5, (const ddsrt_md5_byte_t *)&key, 4);
    ddsrt_md5_finish(&md5, (ddsrt_md5_byte_t *)out->value);
  } else {
    memset(out->value, 0, sizeof out->value);
    memcpy(out->value, &key, 4);
  }
}

// Samples are never decoded: the shim writes and takes CDR only.
static struct ddsi_serdata *message_from_sample(const struct ddsi_sertype *type,
                                                enum ddsi_serdata_kind kind, const void *sample) {
  (void)type, (void)kind, (void)sample;
  return NULL;
}

static bool message_to_sample(const struct ddsi_serdata *d, void *sample, void **at, void *limit) {
  (void)d, (void)sample, (void)at, (void)limit;
  return false;
}

static bool message_untyped_to_sample(const struct ddsi_sertype *type,
                                      const struct ddsi_serdata *d, void *sample, void **at,
                                      void *limit) {
  (void)type, (void)d, (void)sample, (void)at, (void)limit;
  return false;
}

static void message_to_ser(const struct ddsi_serdata *d, size_t off, size_t size, void *out) {
  memcpy(out, ((const struct pg_message *)d)->cdr + off, size);
}

static struct ddsi_serdata *message_to_ser_ref(const struct ddsi_serdata *d, size_t off,
                                               size_t size, ddsrt_iovec_t *ref) {
  ref->iov_base = ((struct pg_message *)d)->cdr + off;
  ref->iov_len = (ddsrt_iov_len_t)size;
  return ddsi_serdata_ref(d);
}

static void message_to_ser_unref(struct ddsi_serdata *d, const ddsrt_iovec_t *ref) {
  (void)ref;
  ddsi_serdata_unref(d);
}

static struct ddsi_serdata *message_to_untyped(const struct ddsi_serdata *d) {
  struct pg_message *m = key_of(d->type, ((const struct pg_message *)d)->device);
  if (m == NULL)
    return NULL;
  m->c.type = NULL;
  return &m->c;
}

static void message_free(struct ddsi_serdata *d) {
  release((struct pg_message *)d);
}

static size_t message_print(const struct ddsi_sertype *type, const struct ddsi_serdata *d,
                            char *out, size_t size) {
  (void)type;
  const struct pg_message *m = (const struct pg_message *)d;
  int n = snprintf(out, size, "{%u,%u bytes}", m->device, m->payload_len);
  return n < 0 ? 0 : (size_t)n;
}

static const struct ddsi_serdata_ops message_ops = {
  .eqkey = message_eqkey,
  .get_size = message_size,
  .from_ser = message_from_ser,
  .from_ser_iov = message_from_ser_iov,
  .from_keyhash = message_from_keyhash,
  .from_sample = message_from_sample,
  .to_ser = message_to_ser,
  .to_ser_ref = message_to_ser_ref,
  .to_ser_unref = message_to_ser_unref,
  .to_sample = message_to_sample,
  .to_untyped = message_to_untyped,
  .untyped_to_sample = message_untyped_to_sample,
  .free = message_free,
  .print = message_print,
  .get_keyhash = message_get_keyhash,
};

static void type_free(struct ddsi_sertype *type) {
  ddsi_sertype_fini(type);
  ddsrt_free(type);
}

static void type_zero_samples(const struct ddsi_sertype *type, void *samples, size_t count) {
  (void)type, (void)samples, (void)count;
}

static void type_realloc_samples(void **ptrs, const struct ddsi_sertype *type, void *old,
                                 size_t old_count, size_t count) {
  (void)type, (void)old, (void)old_count;
  for (size_t i = 0; i < count; i++)
    ptrs[i] = NULL;
}

static void type_free_samples(const struct ddsi_sertype *type, void **ptrs, size_t count,
                              dds_free_op_t op) {
  (void)type, (void)ptrs, (void)count, (void)op;
}

static bool type_equal(const struct ddsi_sertype *a, const struct ddsi_sertype *b) {
  (void)a, (void)b;
  return true; // Same name and operations: there is only one.
}

static uint32_t type_hash(const struct ddsi_sertype *type) {
  (void)type;
  return 0;
}

static struct ddsi_sertype *type_derive(const struct ddsi_sertype *base,
                                        dds_data_representation_id_t representation,
                                        dds_type_consistency_enforcement_qospolicy_t tce) {
  (void)representation, (void)tce;
  // XCDR1 and XCDR2 are the same bytes here, so one set of operations serves both.
  return (struct ddsi_sertype *)base;
}

static const struct ddsi_sertype_ops type_ops = {
  .version = ddsi_sertype_v0,
  .free = type_free,
  .zero_samples = type_zero_samples,
  .realloc_samples = type_realloc_samples,
  .free_samples = type_free_samples,
  .equal = type_equal,
  .hash = type_hash,
  .derive_sertype = type_derive,
};

struct ddsi_sertype *pg_message_type(void) {
  struct ddsi_sertype *type = ddsrt_malloc(sizeof *type);
  memset(type, 0, sizeof *type);
  ddsi_sertype_init(type, "pubgauge::Message", &type_ops, &message_ops, false);
  type->allowed_data_representation = DDS_DATA_REPRESENTATION_FLAG_XCDR1;
  return type;
}

bool pg_message_layout_matches(void) {
  // With shared memory built in, libddsc has two pointers more at the end of a serdata and
  // clears them. Their traces tell how it was built.
  struct ddsi_sertype *type = pg_message_type();
  union {
    struct ddsi_serdata c;
    unsigned char bytes[sizeof(struct ddsi_serdata) + 64];
  } probe;
  memset(&probe, 0xa5, sizeof probe);
  ddsi_serdata_init(&probe.c, type, SDK_DATA);
  bool beyond_untouched = true;
  for (size_t i = sizeof(struct ddsi_serdata); i < sizeof probe; i++)
    beyond_untouched = beyond_untouched && probe.bytes[i] == 0xa5;
#ifdef DDS_HAS_SHM
  bool within = probe.c.iox_chunk == NULL && probe.c.iox_subscriber == NULL;
#else
  bool within = true;
#endif
  type_free(type);
  return beyond_untouched && within;
}
