//! A thin safe layer over libzmq's C interface (`zmq-sys`): contexts, sockets, messages, monitors.
//!
//! Only what this driver needs. All unsafe code of the crate is in this file. Functions and
//! options are those of zmq.h of libzmq 4.3.

use std::ffi::{CString, c_int, c_void};
use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::Arc;

use pubgauge_driver::header::HEADER_LEN;
use zmq_sys as ffi;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum SocketType {
    Pub = ffi::ZMQ_PUB,
    Sub = ffi::ZMQ_SUB,
    Xpub = ffi::ZMQ_XPUB,
    Xsub = ffi::ZMQ_XSUB,
    Pair = ffi::ZMQ_PAIR,
    Push = ffi::ZMQ_PUSH,
    Pull = ffi::ZMQ_PULL,
}

/// A socket option that takes a C `int`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum IntOption {
    SendHwm = ffi::ZMQ_SNDHWM,
    ReceiveHwm = ffi::ZMQ_RCVHWM,
    LingerMs = ffi::ZMQ_LINGER,
    Conflate = ffi::ZMQ_CONFLATE,
    XpubNoDrop = ffi::ZMQ_XPUB_NODROP,
    XpubVerbose = ffi::ZMQ_XPUB_VERBOSE,
    SendBufferBytes = ffi::ZMQ_SNDBUF,
    ReceiveBufferBytes = ffi::ZMQ_RCVBUF,
    Immediate = ffi::ZMQ_IMMEDIATE,
    HandshakeMs = ffi::ZMQ_HANDSHAKE_IVL,
    HeartbeatMs = ffi::ZMQ_HEARTBEAT_IVL,
    ReconnectMs = ffi::ZMQ_RECONNECT_IVL,
    TypeOfService = ffi::ZMQ_TOS,
    Ipv6 = ffi::ZMQ_IPV6,
}

/// Bit of [`Socket::process_commands`]: a message would be taken (ZMQ_POLLOUT).
pub(crate) const WRITABLE: c_int = ffi::ZMQ_POLLOUT as c_int;

/// The version of the libzmq that is linked in.
pub(crate) fn version() -> (i32, i32, i32) {
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: three valid pointers to C ints.
    unsafe { ffi::zmq_version(&mut major, &mut minor, &mut patch) };
    (major, minor, patch)
}

/// The error of the libzmq call that has just failed on this thread.
fn last_error() -> io::Error {
    // SAFETY: reads a thread-local number.
    io::Error::from_raw_os_error(unsafe { ffi::zmq_errno() })
}

fn check(code: c_int) -> io::Result<c_int> {
    if code < 0 {
        Err(last_error())
    } else {
        Ok(code)
    }
}

/// Describes an error of this module; libzmq's own error numbers included.
pub(crate) fn explain(error: &io::Error) -> String {
    let Some(code) = error.raw_os_error() else {
        return error.to_string();
    };
    // SAFETY: zmq_strerror returns a static, NUL-terminated string for every number.
    let text = unsafe { std::ffi::CStr::from_ptr(ffi::zmq_strerror(code)) };
    text.to_string_lossy().into_owned()
}

/// A context: libzmq's I/O threads and what they share. Ends when the last of its sockets and
/// its last handle are gone.
#[derive(Clone)]
pub(crate) struct Context(Arc<RawContext>);

struct RawContext(*mut c_void);

// SAFETY: "A ØMQ context is thread safe and may be shared among as many application threads as
// necessary" (zmq_ctx_new(3)).
unsafe impl Send for RawContext {}
// SAFETY: as above.
unsafe impl Sync for RawContext {}

impl Context {
    /// A context whose threads are running when this returns.
    ///
    /// libzmq starts its threads with the first socket, so one is opened and closed here.
    pub(crate) fn start(io_threads: u16, max_sockets: usize) -> io::Result<Self> {
        // SAFETY: no preconditions; null means failure.
        let raw = unsafe { ffi::zmq_ctx_new() };
        if raw.is_null() {
            return Err(last_error());
        }
        let context = Context(Arc::new(RawContext(raw)));
        context.set(ffi::ZMQ_IO_THREADS, i32::from(io_threads))?;
        let max_sockets = i32::try_from(max_sockets).unwrap_or(i32::MAX);
        context.set(ffi::ZMQ_MAX_SOCKETS, max_sockets)?;
        drop(context.socket(SocketType::Pair)?);
        Ok(context)
    }

    fn set(&self, option: u32, value: c_int) -> io::Result<()> {
        // SAFETY: a live context.
        check(unsafe { ffi::zmq_ctx_set(self.0.0, option as c_int, value) }).map(drop)
    }

    /// A new socket. Its ZMQ_LINGER is 0 until set, so that dropping never hangs.
    pub(crate) fn socket(&self, kind: SocketType) -> io::Result<Socket> {
        // SAFETY: a live context.
        let raw = unsafe { ffi::zmq_socket(self.0.0, kind as c_int) };
        if raw.is_null() {
            return Err(last_error());
        }
        let mut socket = Socket {
            raw,
            fd: -1,
            _context: self.clone(),
            _not_sync: PhantomData,
        };
        socket.set(IntOption::LingerMs, 0)?;
        // With a domain a peer below ZMTP 3 is refused (libzmq, zmtp_engine.cpp), as whatever is no ZMTP seems to be.
        // Taken in, it would be given all messages of a PUB socket, and one that comes while the socket closes ends the
        // process (process_routing_id_msg asserts). Nobody answers for the domain: all other peers are let in.
        socket.set_bytes(ffi::ZMQ_ZAP_DOMAIN, b"pubgauge")?;
        socket.fd = socket.get_int(ffi::ZMQ_FD)?;
        Ok(socket)
    }
}

impl Drop for RawContext {
    fn drop(&mut self) {
        // Every socket holds a handle of the context, so none is open here; termination waits
        // for what they still linger for.
        // SAFETY: the last handle; nobody can use the pointer afterwards.
        while unsafe { ffi::zmq_ctx_term(self.0) } != 0
            && last_error().kind() == io::ErrorKind::Interrupted
        {}
    }
}

/// A socket, of one thread at a time.
pub(crate) struct Socket {
    raw: *mut c_void,
    fd: RawFd,
    _context: Context,
    _not_sync: PhantomData<*mut c_void>,
}

impl Socket {
    pub(crate) fn set(&self, option: IntOption, value: c_int) -> io::Result<()> {
        self.set_bytes(option as u32, &value.to_ne_bytes())
    }

    fn set_bytes(&self, option: u32, value: &[u8]) -> io::Result<()> {
        // SAFETY: a live socket; pointer and length describe `value`, which libzmq copies.
        check(unsafe {
            ffi::zmq_setsockopt(
                self.raw,
                option as c_int,
                value.as_ptr().cast(),
                value.len(),
            )
        })
        .map(drop)
    }

    fn get_int(&self, option: u32) -> io::Result<c_int> {
        let mut value: c_int = 0;
        let mut len = size_of::<c_int>();
        // SAFETY: a live socket; `value` has room for the `len` bytes of an int option.
        check(unsafe {
            ffi::zmq_getsockopt(self.raw, option as c_int, (&raw mut value).cast(), &mut len)
        })?;
        Ok(value)
    }

    /// Subscribes a SUB socket to everything that begins with `prefix`.
    pub(crate) fn subscribe(&self, prefix: &[u8]) -> io::Result<()> {
        self.set_bytes(ffi::ZMQ_SUBSCRIBE, prefix)
    }

    /// The descriptor that becomes readable when libzmq has something for this socket's thread.
    ///
    /// It reports commands from libzmq's other threads, not messages: once readable, the socket
    /// must be used until it says "not now" before sleeping on the descriptor again
    /// (zmq_getsockopt(3), ZMQ_FD).
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        // SAFETY: libzmq keeps the descriptor open as long as the socket, which outlives the
        // borrow.
        unsafe { BorrowedFd::borrow_raw(self.fd) }
    }

    /// Handles what libzmq's threads have sent to this socket, which silences [`Socket::fd`]
    /// until there is more. Returns the socket's ZMQ_EVENTS.
    pub(crate) fn process_commands(&self) -> io::Result<c_int> {
        self.get_int(ffi::ZMQ_EVENTS)
    }

    /// The address that was bound or connected last, with a wildcard port filled in.
    pub(crate) fn last_endpoint(&self) -> io::Result<String> {
        // Longest: "ipc://" and a sun_path of 108 bytes, or a TCP name of at most 255 bytes.
        let mut text = [0u8; 512];
        let mut len = text.len();
        // SAFETY: a live socket; `text` has room for `len` bytes.
        check(unsafe {
            ffi::zmq_getsockopt(
                self.raw,
                ffi::ZMQ_LAST_ENDPOINT as c_int,
                text.as_mut_ptr().cast(),
                &mut len,
            )
        })?;
        let text = &text[..len.saturating_sub(1)]; // The length counts the final NUL.
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    pub(crate) fn bind(&self, address: &str) -> io::Result<()> {
        let address = CString::new(address)?;
        // SAFETY: a live socket and a NUL-terminated string.
        check(unsafe { ffi::zmq_bind(self.raw, address.as_ptr()) }).map(drop)
    }

    /// Begins to connect to an address.
    pub(crate) fn connect(&self, address: &str) -> io::Result<()> {
        let address = CString::new(address)?;
        // SAFETY: a live socket and a NUL-terminated string.
        check(unsafe { ffi::zmq_connect(self.raw, address.as_ptr()) }).map(drop)
    }

    /// Gives up the connection to an address.
    pub(crate) fn disconnect(&self, address: &str) -> io::Result<()> {
        let address = CString::new(address)?;
        // SAFETY: a live socket and a NUL-terminated string.
        check(unsafe { ffi::zmq_disconnect(self.raw, address.as_ptr()) }).map(drop)
    }

    /// Begins to report the socket's connection events at an `inproc://` address.
    pub(crate) fn monitor(&self, address: &str, events: u32) -> io::Result<()> {
        let address = CString::new(address)?;
        // SAFETY: a live socket and a NUL-terminated string.
        check(unsafe { ffi::zmq_socket_monitor(self.raw, address.as_ptr(), events as c_int) })
            .map(drop)
    }

    /// Ends all reporting of connection events, if there is any.
    ///
    /// To be called before the other end of the reports, the [`Monitor`], is closed: libzmq
    /// writes them from the I/O thread, with a blocking zmq_msg_send that waits for a reader for
    /// ever (socket_base.cpp, monitor_event), while closing a socket takes effect some time later.
    /// A connection lost in between would stop every byte of the context.
    pub(crate) fn unmonitor(&self) {
        // SAFETY: a live socket; a null address ends monitoring (zmq_socket_monitor(3)). Fails
        // only for a context that is terminated, which cannot be while it has a socket.
        unsafe { ffi::zmq_socket_monitor(self.raw, std::ptr::null(), 0) };
    }

    /// Hands a new message over without waiting; it is freed if it was not taken.
    #[inline]
    pub(crate) fn send_new(&self, mut message: ZmqMessage, more: bool) -> io::Result<()> {
        let mut outcome = self.send(&mut message, more);
        if outcome.as_ref().is_err_and(would_block) {
            // While sending, libzmq looks only once in a millisecond at what its threads have
            // told it, namely that the queue has room again. A blocking zmq_send looks before it
            // sleeps (socket_base.cpp, send); so does this.
            self.process_commands()?;
            outcome = self.send(&mut message, more);
        }
        if outcome.is_ok() {
            // libzmq has left an empty message behind, which holds nothing to be freed.
            std::mem::forget(message);
        }
        outcome
    }

    /// Hands a message over without waiting. The message is empty afterwards if, and only if,
    /// it was taken.
    #[inline]
    pub(crate) fn send(&self, message: &mut ZmqMessage, more: bool) -> io::Result<()> {
        let flags = ffi::ZMQ_DONTWAIT | if more { ffi::ZMQ_SNDMORE } else { 0 };
        // SAFETY: a live socket and an initialised message.
        check(unsafe { ffi::zmq_msg_send(&mut message.raw, self.raw, flags as c_int) })?;
        message.len = 0;
        Ok(())
    }

    /// Takes the next frame without waiting and gives its length; `None` if there is none. What
    /// `message` held before is freed.
    #[inline]
    pub(crate) fn receive(&self, message: &mut ZmqMessage) -> io::Result<Option<usize>> {
        // SAFETY: a live socket and an initialised message.
        let code =
            unsafe { ffi::zmq_msg_recv(&mut message.raw, self.raw, ffi::ZMQ_DONTWAIT as c_int) };
        // The length is never more than the frame has: frames of 2 GiB and more report
        // INT_MAX (zmq.cpp, s_recvmsg), and nobody sends them here.
        message.len = usize::try_from(code).unwrap_or(0);
        if code >= 0 {
            return Ok(Some(message.len));
        }
        match last_error() {
            error if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            error => Err(error),
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // SAFETY: the only handle of a live socket. Fails only for what is not a socket.
        unsafe { ffi::zmq_close(self.raw) };
    }
}

/// Whether an error says "not now".
#[inline]
pub(crate) fn would_block(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

/// One frame, in libzmq's own memory.
pub(crate) struct ZmqMessage {
    raw: ffi::zmq_msg_t,
    /// Not more than zmq_msg_size(3) would say: a call for each message saved.
    len: usize,
}

impl ZmqMessage {
    /// A frame of no bytes.
    pub(crate) fn empty() -> Self {
        let mut raw = MaybeUninit::uninit();
        // SAFETY: zmq_msg_init writes the whole message and never fails (zmq_msg_init(3)).
        unsafe {
            ffi::zmq_msg_init(raw.as_mut_ptr());
            ZmqMessage {
                raw: raw.assume_init(),
                len: 0,
            }
        }
    }

    /// A frame made of three parts, one after the other. The length of `head` is fixed, so that
    /// copying it takes no call.
    ///
    /// # Errors
    /// Out of memory.
    #[inline]
    pub(crate) fn from_parts(
        before: &[u8],
        head: &[u8; HEADER_LEN],
        after: &[u8],
    ) -> io::Result<Self> {
        let len = before.len() + HEADER_LEN + after.len();
        let mut raw = MaybeUninit::uninit();
        // SAFETY: on success the message is initialised and its data are `len` writable bytes,
        // filled completely by the three copies.
        unsafe {
            check(ffi::zmq_msg_init_size(raw.as_mut_ptr(), len))?;
            let mut raw = raw.assume_init();
            let to = ffi::zmq_msg_data(&mut raw).cast::<u8>();
            std::ptr::copy_nonoverlapping(before.as_ptr(), to, before.len());
            let to = to.add(before.len());
            to.cast::<[u8; HEADER_LEN]>().write_unaligned(*head);
            let to = to.add(HEADER_LEN);
            std::ptr::copy_nonoverlapping(after.as_ptr(), to, after.len());
            Ok(ZmqMessage { raw, len })
        }
    }

    /// A frame with a copy of `bytes`.
    ///
    /// # Errors
    /// Out of memory.
    #[inline]
    pub(crate) fn copy_of(bytes: &[u8]) -> io::Result<Self> {
        let mut raw = MaybeUninit::uninit();
        // SAFETY: as in `of`.
        unsafe {
            check(ffi::zmq_msg_init_size(raw.as_mut_ptr(), bytes.len()))?;
            let mut raw = raw.assume_init();
            let to = ffi::zmq_msg_data(&mut raw).cast::<u8>();
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
            let len = bytes.len();
            Ok(ZmqMessage { raw, len })
        }
    }

    /// Prefetches the frame's first bytes into the cache: libzmq's thread has written them on
    /// another core.
    #[inline]
    pub(crate) fn prefetch(&self) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch reads nothing and never faults; SSE is part of x86-64.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(self.bytes().as_ptr().cast());
        }
    }

    /// The frame's bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the data of an initialised message, `len` bytes at least, stay valid while it is
        // borrowed; zmq_msg_data takes a mutable pointer but changes nothing.
        unsafe {
            let data = ffi::zmq_msg_data((&raw const self.raw).cast_mut());
            std::slice::from_raw_parts(data.cast::<u8>(), self.len)
        }
    }

    /// Whether more frames of the same message follow.
    #[inline]
    pub(crate) fn has_more(&self) -> bool {
        // SAFETY: an initialised message.
        unsafe { ffi::zmq_msg_more(&self.raw) != 0 }
    }
}

impl Drop for ZmqMessage {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: an initialised message, not used afterwards.
        unsafe { ffi::zmq_msg_close(&mut self.raw) };
    }
}

/// An event of one connection of a monitored socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// Both ends have agreed on the protocol.
    Up,
    /// The connection that was up is gone.
    Down,
    /// No answer, or the handshake failed.
    Refused,
}

/// The connection events of one socket.
pub(crate) struct Monitor {
    socket: Socket,
    message: ZmqMessage,
}

impl Monitor {
    const EVENTS: u32 = ffi::ZMQ_EVENT_HANDSHAKE_SUCCEEDED
        | ffi::ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL
        | ffi::ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL
        | ffi::ZMQ_EVENT_HANDSHAKE_FAILED_AUTH
        | ffi::ZMQ_EVENT_DISCONNECTED
        | ffi::ZMQ_EVENT_CONNECT_RETRIED;

    /// Watches `socket`; `name` must be unique within the context. Dropped only after
    /// [`Socket::unmonitor`].
    pub(crate) fn watch(socket: &Socket, context: &Context, name: &str) -> io::Result<Self> {
        let address = format!("inproc://{name}");
        let pair = context.socket(SocketType::Pair)?;
        // No limit: with one, the I/O thread would wait for this reader, which in turn waits for it
        // in `unmonitor`. There are a few short events for each connection.
        pair.set(IntOption::ReceiveHwm, 0)?;
        socket.monitor(&address, Self::EVENTS)?;
        if let Err(error) = pair.connect(&address) {
            socket.unmonitor();
            return Err(error);
        }
        let mut message = ZmqMessage::empty();
        // libzmq wakes a reader only after it has once found nothing (pipe.cpp, check_read).
        pair.receive(&mut message)?;
        Ok(Monitor {
            socket: pair,
            message,
        })
    }

    /// See [`Socket::fd`].
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.fd()
    }

    /// The next event, with the address of the other end, if one has come.
    ///
    /// Two frames (zmq_socket_monitor(3)): the event's number (16 bits) and value (32 bits),
    /// then the address.
    pub(crate) fn next(&mut self) -> io::Result<Option<(Link, String)>> {
        loop {
            if self.socket.receive(&mut self.message)?.is_none() {
                return Ok(None);
            }
            let event = match self.message.bytes() {
                [low, high, ..] => u32::from(u16::from_ne_bytes([*low, *high])),
                _ => 0,
            };
            let mut address = String::new();
            while self.message.has_more() && self.socket.receive(&mut self.message)?.is_some() {
                address = String::from_utf8_lossy(self.message.bytes()).into_owned();
            }
            let link = match event {
                ffi::ZMQ_EVENT_HANDSHAKE_SUCCEEDED => Link::Up,
                ffi::ZMQ_EVENT_DISCONNECTED => Link::Down,
                ffi::ZMQ_EVENT_CONNECT_RETRIED
                | ffi::ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL
                | ffi::ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL
                | ffi::ZMQ_EVENT_HANDSHAKE_FAILED_AUTH => Link::Refused,
                _ => continue,
            };
            return Ok(Some((link, address)));
        }
    }
}
