// Looks into a writer's history.
//
// Cyclone 0.10 blocks in a write until there is room, or tells nobody when there is. To try is no
// way to find out: each write in vain sends what was gathered and a heartbeat to all readers. So
// we look at what Cyclone itself looks at. Its layout is not promised by its API: it is checked
// before it is used.

#include "room.h"

#include <string.h>

#include "dds/ddsi/ddsi_domaingv.h"
#include "dds/ddsi/ddsi_entity.h"
#include "dds/ddsi/q_hbcontrol.h"
// Needs the two before.
#include "dds/ddsi/ddsi_endpoint.h"
#include "dds/ddsi/ddsi_entity_index.h"
#include "dds/ddsi/q_bswap.h"
#include "dds/ddsi/q_thread.h"
#include "dds/ddsi/q_whc.h"

const struct ddsi_writer *pg_room_find(const struct ddsi_sertype *type, dds_entity_t handle) {
  struct ddsi_domaingv *gv = ddsrt_atomic_ldvoidp(&type->gv);
  dds_guid_t key;
  ddsi_guid_t guid;
  if (gv == NULL || dds_get_guid(handle, &key) != DDS_RETCODE_OK)
    return NULL;
  memcpy(&guid, &key, sizeof guid);
  guid = nn_ntoh_guid(guid);
  struct thread_state *self = lookup_thread_state();
  thread_state_awake(self, gv);
  const struct ddsi_writer *writer = entidx_lookup_writer_guid(gv->entity_index, &guid);
  thread_state_asleep(self);
  // One that keeps all and is reliable has the configured marks; others are never held back.
  if (writer == NULL || memcmp(&writer->e.guid, &guid, sizeof guid) != 0 || writer->e.gv != gv ||
      writer->type != type || writer->whc == NULL || !writer->reliable ||
      writer->whc_low != gv->config.whc_lowwater_mark || writer->whc_high < writer->whc_low ||
      writer->whc_high > gv->config.whc_highwater_mark)
    return NULL;
  return writer;
}

bool pg_has_room(const struct ddsi_writer *writer) {
  struct whc_state state;
  whc_get_state(writer->whc, &state);
  // Changed by receive threads: either value will do.
  return state.unacked_bytes <= __atomic_load_n(&writer->whc_high, __ATOMIC_RELAXED);
}
