// Memory for messages, of which each is got by one thread and given back by another: received ones
// by the fleet's thread, sent ones by the receive thread that hears of their acknowledgement.
// malloc's caches are one thread's, so it would take its lock for each of them. Here full rounds of
// pieces change hands at once, as in Cyclone's own pool (q_freelist.h), which is not exported.

#include "pool.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

// Pieces are whole multiples of STEP bytes; above the largest, copying costs more than malloc.
#define STEP 64u
#define CLASSES 32u
// Pieces that change hands at once.
#define ROUND 32u
// Rounds of each class that are kept for other threads.
#define MOST_ROUNDS 64u

// What is in a piece while nobody has it.
struct piece {
  struct piece *next;
  // In the first piece of a round.
  struct piece *next_round;
};

// A thread's own pieces of a class: what it takes from, and a whole round or none.
struct own {
  struct piece *some;
  struct piece *round;
  unsigned n;
};

static struct {
  pthread_mutex_t lock;
  struct piece *rounds;
  unsigned n;
} shared[CLASSES] = {[0 ... CLASSES - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};

static _Thread_local struct own own[CLASSES];
static _Thread_local unsigned char used;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t at_end;

static void free_all(struct piece *piece) {
  while (piece != NULL) {
    struct piece *next = piece->next;
    free(piece);
    piece = next;
  }
}

// A thread ends: Cyclone's go with their domain.
static void leave(void *all) {
  struct own *mine = all;
  for (unsigned i = 0; i < CLASSES; i++) {
    free_all(mine[i].some);
    free_all(mine[i].round);
    mine[i] = (struct own){0};
  }
}

static void prepare(void) {
  // Without a key, what an ending thread has is lost, no more.
  (void)pthread_key_create(&at_end, leave);
}

static void begin(void) {
  used = 1;
  pthread_once(&once, prepare);
  (void)pthread_setspecific(at_end, own);
}

static unsigned class_of(size_t size) {
  return size == 0 || size > STEP * CLASSES ? CLASSES : (unsigned)((size - 1) / STEP);
}

static struct piece *take_round(unsigned class) {
  pthread_mutex_lock(&shared[class].lock);
  struct piece *round = shared[class].rounds;
  if (round != NULL) {
    shared[class].rounds = round->next_round;
    shared[class].n--;
  }
  pthread_mutex_unlock(&shared[class].lock);
  return round;
}

// False if there are enough.
static bool give_round(unsigned class, struct piece *round) {
  pthread_mutex_lock(&shared[class].lock);
  bool room = shared[class].n < MOST_ROUNDS;
  if (room) {
    round->next_round = shared[class].rounds;
    shared[class].rounds = round;
    shared[class].n++;
  }
  pthread_mutex_unlock(&shared[class].lock);
  return room;
}

void *pg_pool_get(size_t size) {
  unsigned class = class_of(size);
  if (class == CLASSES)
    return malloc(size);
  struct own *mine = &own[class];
  if (mine->some == NULL) {
    if (!used)
      begin();
    struct piece *round = mine->round != NULL ? mine->round : take_round(class);
    mine->round = NULL;
    if (round == NULL)
      return malloc((class + 1) * STEP);
    mine->some = round;
    mine->n = ROUND;
  }
  struct piece *piece = mine->some;
  mine->some = piece->next;
  mine->n--;
  return piece;
}

void pg_pool_put(void *memory, size_t size) {
  unsigned class = class_of(size);
  if (class == CLASSES) {
    free(memory);
    return;
  }
  struct own *mine = &own[class];
  if (mine->n == ROUND) {
    if (mine->round != NULL && !give_round(class, mine->round))
      free_all(mine->round);
    mine->round = mine->some;
    mine->some = NULL;
    mine->n = 0;
  }
  if (!used)
    begin();
  struct piece *piece = memory;
  piece->next = mine->some;
  mine->some = piece;
  mine->n++;
}
