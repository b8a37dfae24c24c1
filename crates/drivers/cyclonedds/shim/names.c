#include "names.h"

#include <stdlib.h>
#include <string.h>

// Writers that have gone and whose partitions are remembered, for messages that are still queued.
#define MOST_GONE 4096u

struct known_writer {
  uint64_t publication;
  char *partition;
  bool gone;
};

void pg_names_init(struct pg_names *names) {
  memset(names, 0, sizeof *names);
  pthread_mutex_init(&names->lock, NULL);
}

void pg_names_fini(struct pg_names *names) {
  for (uint32_t i = 0; i < names->n; i++)
    free(names->writers[i].partition);
  free(names->writers);
  pthread_mutex_destroy(&names->lock);
}

static void remember(struct pg_names *names, uint64_t publication, const char *partition) {
  for (uint32_t i = names->n; i-- > 0;)
    if (names->writers[i].publication == publication)
      return;
  if (names->n == names->room) {
    uint32_t room = names->room == 0 ? 16 : 2 * names->room;
    struct known_writer *more = realloc(names->writers, room * sizeof *more);
    if (more == NULL)
      return;
    names->writers = more;
    names->room = room;
  }
  char *copy = strdup(partition);
  if (copy != NULL)
    names->writers[names->n++] = (struct known_writer){publication, copy, false};
}

static void forget_gone(struct pg_names *names) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < names->n; i++)
    if (names->writers[i].gone)
      free(names->writers[i].partition);
    else
      names->writers[kept++] = names->writers[i];
  names->n = kept;
  names->n_gone = 0;
}

void pg_names_learn(struct pg_names *names, dds_entity_t reader, uint64_t publication) {
  dds_builtintopic_endpoint_t *writer = dds_get_matched_publication_data(reader, publication);
  if (writer == NULL)
    return;
  uint32_t n = 0;
  char **partitions = NULL;
  const char *partition = "";
  if (dds_qget_partition(writer->qos, &n, &partitions) && n > 0)
    partition = partitions[0];
  pthread_mutex_lock(&names->lock);
  remember(names, publication, partition);
  pthread_mutex_unlock(&names->lock);
  for (uint32_t i = 0; i < n; i++)
    dds_free(partitions[i]);
  dds_free(partitions);
  dds_builtintopic_free_endpoint(writer);
}

void pg_names_gone(struct pg_names *names, uint64_t publication) {
  pthread_mutex_lock(&names->lock);
  for (uint32_t i = 0; i < names->n; i++)
    if (names->writers[i].publication == publication && !names->writers[i].gone) {
      names->writers[i].gone = true;
      names->n_gone++;
    }
  if (names->n_gone > MOST_GONE)
    forget_gone(names);
  pthread_mutex_unlock(&names->lock);
}

int32_t pg_names_find(struct pg_names *names, uint64_t publication, char *out, uint32_t len) {
  int32_t found = -1;
  pthread_mutex_lock(&names->lock);
  for (uint32_t i = names->n; i-- > 0 && found < 0;)
    if (names->writers[i].publication == publication) {
      size_t n = strlen(names->writers[i].partition);
      if (n > len || n > INT32_MAX)
        break;
      memcpy(out, names->writers[i].partition, n);
      found = (int32_t)n;
    }
  pthread_mutex_unlock(&names->lock);
  return found;
}
