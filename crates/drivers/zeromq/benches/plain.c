/* The yardstick: what a plain C program gets out of the same libzmq. One publisher, one
   subscriber, one zmq_send and one zmq_msg_recv for each message. Messages have no content, unless
   `fill` writes it and `check` looks at it. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zmq.h>

static double now (void)
{
    struct timespec t;
    clock_gettime (CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

/* Binds to a free port, tells `address_known` which, and once `go` returns sends `count`
   messages of `size` bytes, each filled by `fill` unless that is null. Returns 0, or -1 if libzmq
   fails. */
int plain_publish (long count, int size, int hwm, void (*address_known) (const char *),
                   void (*go) (void), void (*fill) (void *, char *, long), void *user)
{
    void *context = zmq_ctx_new ();
    void *publisher = zmq_socket (context, ZMQ_XPUB);
    int nodrop = 1;
    char text[256];
    size_t len = sizeof text;
    char *message = calloc (1, size);
    zmq_setsockopt (publisher, ZMQ_SNDHWM, &hwm, sizeof hwm);
    zmq_setsockopt (publisher, ZMQ_XPUB_NODROP, &nodrop, sizeof nodrop);
    if (zmq_bind (publisher, "tcp://127.0.0.1:*")
        || zmq_getsockopt (publisher, ZMQ_LAST_ENDPOINT, text, &len))
        return -1;
    address_known (text);
    if (zmq_recv (publisher, text, sizeof text, 0) < 0) /* the subscription */
        return -1;
    go ();
    for (long i = 0; i < count; i++) {
        if (fill)
            fill (user, message, i);
        if (zmq_send (publisher, message, size, 0) < 0)
            return -1;
    }
    zmq_close (publisher);
    zmq_ctx_term (context);
    free (message);
    return 0;
}

/* Receives `count` messages; `started` is called when the first is there, `check` for each unless it
   is null. Returns the seconds from the first to the last message, or -1 if libzmq fails or nothing
   comes for 15 s. */
double plain_subscribe (const char *address, long count, int hwm, void (*started) (void),
                        void (*check) (void *, const char *, size_t, long), void *user)
{
    void *context = zmq_ctx_new ();
    void *subscriber = zmq_socket (context, ZMQ_SUB);
    int timeout_ms = 15000;
    zmq_msg_t message;
    zmq_setsockopt (subscriber, ZMQ_RCVHWM, &hwm, sizeof hwm);
    zmq_setsockopt (subscriber, ZMQ_SUBSCRIBE, "", 0);
    zmq_setsockopt (subscriber, ZMQ_RCVTIMEO, &timeout_ms, sizeof timeout_ms);
    if (zmq_connect (subscriber, address))
        return -1;
    zmq_msg_init (&message);
    if (zmq_msg_recv (&message, subscriber, 0) < 0)
        return -1;
    started ();
    double start = now ();
    for (long i = 0; i < count; i++) {
        if (i > 0 && zmq_msg_recv (&message, subscriber, 0) < 0)
            return -1;
        if (check)
            check (user, zmq_msg_data (&message), zmq_msg_size (&message), i);
    }
    double seconds = now () - start;
    zmq_msg_close (&message);
    zmq_close (subscriber);
    zmq_ctx_term (context);
    return seconds;
}
