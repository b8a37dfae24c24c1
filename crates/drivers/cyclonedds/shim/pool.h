// Memory for messages.
#ifndef PUBGAUGE_POOL_H
#define PUBGAUGE_POOL_H

#include <stddef.h>

// As malloc and free; the size is to be given again.
void *pg_pool_get(size_t size);
void pg_pool_put(void *memory, size_t size);

#endif
