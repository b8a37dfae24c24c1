// Stands between Cyclone and its UDP sockets: counts what goes through, and knows when a receive
// thread has dealt with a datagram and comes for the next.
//
// Cyclone 0.10 offers no such figure through its API. Its sockets are objects with a read and a
// write function, which we replace by ours, which count and call the original. Everything is
// checked before anything is changed: the library's layout is not promised by its API.

#include "wire.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

#include "dds/ddsi/ddsi_domaingv.h"
#include "dds/ddsi/ddsi_sertype.h"
#include "dds/ddsi/ddsi_tran.h"

#define MOST_CONNECTIONS (4 + MAX_XMIT_CONNS)
// Datagrams after which the fleet is woken although there are more: some ten microseconds' worth.
#define MOST_DEFERRED 8

struct pg_wire_hook {
  const struct ddsi_domaingv *gv;
  struct pg_fleet *fleet;
  struct pg_wire_hook *next;
  // Sockets with a thread that does nothing but read them.
  const struct ddsi_tran_conn *single[MAX_RECV_THREADS];
  _Atomic uint64_t sent_bytes, sent_datagrams, received_bytes, received_datagrams;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pg_wire_hook *hooks;
// Changes whenever `hooks` does.
static _Atomic uint64_t generation;
// All UDP sockets have the same functions.
static _Atomic(ddsi_tran_read_fn_t) real_read;
static _Atomic(ddsi_tran_write_fn_t) real_write;

// Threads belong to one domain, or stay with it for long: no lock on the way of a datagram.
static struct pg_wire_hook *hook_of(const struct ddsi_domaingv *gv) {
  static _Thread_local const struct ddsi_domaingv *last;
  static _Thread_local uint64_t seen = UINT64_MAX;
  static _Thread_local struct pg_wire_hook *hook;
  uint64_t now = atomic_load_explicit(&generation, memory_order_acquire);
  if (last != gv || seen != now) {
    pthread_mutex_lock(&lock);
    for (hook = hooks; hook != NULL && hook->gv != gv; hook = hook->next)
      ;
    seen = atomic_load(&generation);
    pthread_mutex_unlock(&lock);
    last = gv;
  }
  return hook;
}

// What a receive thread has put off.
static _Thread_local struct {
  // It reads a socket of its own, so it will be back in counting_read.
  bool comes_back;
  // Of the datagram that it is dealing with, if so.
  struct pg_fleet *hearing;
  struct pg_fleet *fleet;
  unsigned datagrams;
} deferred;

bool pg_wire_defer(struct pg_fleet *fleet) {
  if (!deferred.comes_back)
    return false;
  deferred.fleet = fleet;
  return true;
}

static void before_read(ddsi_tran_conn_t conn) {
  struct pg_fleet *fleet = deferred.fleet;
  if (pg_fleet_sleeps(fleet)) {
    unsigned char byte;
    if (++deferred.datagrams < MOST_DEFERRED &&
        recv(ddsi_conn_handle(conn), &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0)
      return; // There is more.
    pg_fleet_wake(fleet);
  }
  // Awake, it looks at its readers before it sleeps.
  deferred.fleet = NULL;
  deferred.datagrams = 0;
}

static ssize_t counting_read(ddsi_tran_conn_t conn, unsigned char *buf, size_t len, bool spurious,
                             ddsi_locator_t *source) {
  const struct ddsi_domaingv *gv = conn->m_base.gv;
  if (deferred.hearing != NULL)
    pg_fleet_heard(deferred.hearing);
  if (deferred.fleet != NULL)
    before_read(conn);
  ssize_t n = atomic_load_explicit(&real_read, memory_order_relaxed)(conn, buf, len, spurious, source);
  struct pg_wire_hook *hook;
  if (n > 0 && (hook = hook_of(gv)) != NULL) {
    atomic_fetch_add_explicit(&hook->received_bytes, (uint64_t)n, memory_order_relaxed);
    atomic_fetch_add_explicit(&hook->received_datagrams, 1, memory_order_relaxed);
    deferred.comes_back = false;
    for (size_t i = 0; i < MAX_RECV_THREADS; i++)
      deferred.comes_back |= hook->single[i] == conn;
    deferred.hearing = deferred.comes_back ? hook->fleet : NULL;
  }
  return n;
}

static ssize_t counting_write(ddsi_tran_conn_t conn, const ddsi_locator_t *to, size_t niov,
                              const ddsrt_iovec_t *iov, uint32_t flags) {
  const struct ddsi_domaingv *gv = conn->m_base.gv;
  ssize_t n = atomic_load_explicit(&real_write, memory_order_relaxed)(conn, to, niov, iov, flags);
  struct pg_wire_hook *hook;
  if (n > 0 && (hook = hook_of(gv)) != NULL) {
    atomic_fetch_add_explicit(&hook->sent_bytes, (uint64_t)n, memory_order_relaxed);
    atomic_fetch_add_explicit(&hook->sent_datagrams, 1, memory_order_relaxed);
  }
  return n;
}

// The domain's UDP sockets, each once. 0 if anything is not as expected.
static size_t connections(struct ddsi_domaingv *gv, struct ddsi_tran_conn **out) {
  struct ddsi_tran_conn *all[MOST_CONNECTIONS] = {gv->disc_conn_mc, gv->data_conn_mc,
                                                  gv->disc_conn_uc, gv->data_conn_uc};
  memcpy(all + 4, gv->xmit_conns, sizeof gv->xmit_conns);
  if (gv->m_factory == NULL || gv->m_factory->gv != gv || gv->disc_conn_uc == NULL ||
      gv->xmit_conns[0] == NULL)
    return 0;
  size_t n = 0;
  for (size_t i = 0; i < MOST_CONNECTIONS; i++) {
    struct ddsi_tran_conn *conn = all[i];
    bool known = conn == NULL;
    for (size_t k = 0; k < n && !known; k++)
      known = out[k] == conn;
    if (known)
      continue;
    if (conn->m_base.gv != gv || conn->m_factory != gv->m_factory || conn->m_stream ||
        conn->m_base.m_trantype != DDSI_TRAN_CONN ||
        conn->m_read_fn != all[2]->m_read_fn || conn->m_write_fn != all[2]->m_write_fn)
      return 0;
    out[n++] = conn;
  }
  return n;
}

// Cyclone binds what it receives with to all interfaces, whatever its configuration says
// (ddsi_udp_create_conn). On a domain of the loopback interface alone such a socket is bound to that
// interface as well, so that it takes nothing from a network. Linux 5.7 allows it to everybody; where
// it does not, the socket stays as the library made it.
static void keep_local(const struct ddsi_domaingv *gv, struct ddsi_tran_conn **conns, size_t n) {
  if (gv->n_interfaces != 1 || !gv->interfaces[0].loopback || gv->interfaces[0].name == NULL)
    return;
  const char *name = gv->interfaces[0].name;
  for (size_t i = 0; i < n; i++) {
    struct sockaddr_in local;
    socklen_t len = sizeof local;
    int fd = ddsi_conn_handle(conns[i]);
    if (getsockname(fd, (struct sockaddr *)&local, &len) == 0 && local.sin_family == AF_INET &&
        local.sin_addr.s_addr == htonl(INADDR_ANY))
      (void)setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name, (socklen_t)strlen(name));
  }
}

struct pg_wire_hook *pg_wire_attach(const struct ddsi_sertype *type, struct pg_fleet *fleet) {
  struct ddsi_domaingv *gv = ddsrt_atomic_ldvoidp(&type->gv);
  struct ddsi_tran_conn *conns[MOST_CONNECTIONS];
  size_t n = gv == NULL ? 0 : connections(gv, conns);
  if (n == 0)
    return NULL;
  keep_local(gv, conns, n);
  struct pg_wire_hook *hook = calloc(1, sizeof *hook);
  if (hook == NULL)
    return NULL;
  hook->gv = gv;
  hook->fleet = fleet;
  for (uint32_t i = 0; i < gv->n_recv_threads && i < MAX_RECV_THREADS; i++)
    if (gv->recv_threads[i].arg.mode == RTM_SINGLE)
      hook->single[i] = gv->recv_threads[i].arg.u.single.conn;
  pthread_mutex_lock(&lock);
  ddsi_tran_read_fn_t read = atomic_load(&real_read);
  ddsi_tran_write_fn_t write = atomic_load(&real_write);
  if (read == NULL) {
    atomic_store(&real_read, read = conns[0]->m_read_fn);
    atomic_store(&real_write, write = conns[0]->m_write_fn);
  }
  if (read != conns[0]->m_read_fn || write != conns[0]->m_write_fn) {
    pthread_mutex_unlock(&lock);
    free(hook);
    return NULL;
  }
  hook->next = hooks;
  hooks = hook;
  atomic_fetch_add(&generation, 1);
  pthread_mutex_unlock(&lock);
  // The receive threads are in these functions already; a pointer is replaced in one piece, and
  // either of its values will do.
  for (size_t i = 0; i < n; i++) {
    __atomic_store_n(&conns[i]->m_read_fn, counting_read, __ATOMIC_RELEASE);
    __atomic_store_n(&conns[i]->m_write_fn, counting_write, __ATOMIC_RELEASE);
  }
  return hook;
}

void pg_wire_counters(const struct pg_wire_hook *h, struct pg_wire *out) {
  struct pg_wire_hook *hook = (struct pg_wire_hook *)h;
  out->sent_bytes = atomic_load_explicit(&hook->sent_bytes, memory_order_relaxed);
  out->sent_datagrams = atomic_load_explicit(&hook->sent_datagrams, memory_order_relaxed);
  out->received_bytes = atomic_load_explicit(&hook->received_bytes, memory_order_relaxed);
  out->received_datagrams = atomic_load_explicit(&hook->received_datagrams, memory_order_relaxed);
}

void pg_wire_free(struct pg_wire_hook *hook) {
  if (hook == NULL)
    return;
  pthread_mutex_lock(&lock);
  for (struct pg_wire_hook **at = &hooks; *at != NULL; at = &(*at)->next)
    if (*at == hook) {
      *at = hook->next;
      break;
    }
  atomic_fetch_add(&generation, 1);
  pthread_mutex_unlock(&lock);
  free(hook);
}
