//! Safe wrappers of the C shim: see shim/pubgauge.h.

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_void};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use pubgauge_dds::library::Traffic;
use pubgauge_driver::{DriverError, Nanos, Resource};

/// Most messages taken with one call.
pub(crate) const MOST: usize = 64;

/// As `struct pg_qos`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Qos {
    pub(crate) lifespan_ns: i64,
    pub(crate) deadline_ns: i64,
    pub(crate) latency_budget_ns: i64,
    pub(crate) depth: i32,
    pub(crate) max_samples: i32,
    pub(crate) transport_priority: i32,
    pub(crate) ownership_strength: i32,
    pub(crate) reliable: bool,
    pub(crate) transient_local: bool,
    pub(crate) exclusive: bool,
}

/// As `struct pg_sample`.
#[repr(C)]
#[derive(Clone, Copy)]
struct RawSample {
    payload: *const u8,
    publication: u64,
    source_ns: i64,
    len: u32,
    device: u32,
}

#[repr(C)]
struct RawFleet {
    _private: [u8; 0],
}

#[repr(C)]
struct RawReader {
    _private: [u8; 0],
}

unsafe extern "C" {
    fn pg_fleet_open(
        instance: u32,
        config: *const c_char,
        limit: u32,
        why: *mut c_char,
        why_len: u32,
    ) -> *mut RawFleet;
    fn pg_fleet_close(fleet: *mut RawFleet);
    fn pg_wire_counts(fleet: *const RawFleet) -> bool;
    fn pg_wire_read(fleet: *const RawFleet, out: *mut Traffic);
    fn pg_writer_new(fleet: *mut RawFleet, partition: *const c_char, qos: *const Qos) -> i32;
    fn pg_writer_free(fleet: *mut RawFleet, writer: i32);
    fn pg_write(
        fleet: *mut RawFleet,
        writer: i32,
        device: u32,
        head: *const u8,
        head_len: u32,
        body: *const u8,
        body_len: u32,
    ) -> i32;
    fn pg_writer_history(fleet: *mut RawFleet, writer: i32) -> *const c_void;
    fn pg_has_room(history: *const c_void) -> bool;
    fn pg_hold_back(fleet: *mut RawFleet, held_back: bool);
    fn pg_heard(fleet: *mut RawFleet) -> bool;
    fn pg_wait_for_acks(fleet: *mut RawFleet, writer: i32, ns: i64) -> i32;
    fn pg_reader_new(
        fleet: *mut RawFleet,
        index: u32,
        partitions: *const *const c_char,
        n: u32,
        names: bool,
        qos: *const Qos,
        error: *mut i32,
    ) -> *mut RawReader;
    fn pg_reader_free(fleet: *mut RawFleet, reader: *mut RawReader);
    fn pg_take(
        reader: *mut RawReader,
        out: *mut RawSample,
        held: *mut *mut c_void,
        max: u32,
        n_held: *mut u32,
    ) -> i32;
    fn pg_release(held: *mut *mut c_void, n_held: u32);
    fn pg_partition_of(reader: *mut RawReader, publication: u64, out: *mut c_char, len: u32)
    -> i32;
    fn pg_deadlines_missed(reader: *const RawReader) -> u32;
    fn pg_incompatible(reader: *const RawReader) -> u32;
    fn pg_next_ready(fleet: *mut RawFleet) -> i64;
    fn pg_has_ready(fleet: *const RawFleet) -> bool;
    fn pg_wait(fleet: *mut RawFleet, until_ns: u64);
    fn pg_version() -> *const c_char;
    fn pg_timeout() -> i32;
    // libddsc's own.
    fn dds_write_flush(writer: i32);
    fn dds_strretcode(code: i32) -> *const c_char;
}

/// The version that the shim was compiled for.
pub(crate) fn version() -> String {
    // SAFETY: a string literal of the shim.
    unsafe { CStr::from_ptr(pg_version()) }
        .to_string_lossy()
        .into_owned()
}

/// `PG_NO_MEMORY`.
const NO_MEMORY: i32 = i32::MIN;

/// The error of a return code.
pub(crate) fn failed(what: &str, code: i32) -> DriverError {
    if code == NO_MEMORY {
        let text = format!("Cyclone DDS: {what}: out of memory");
        return DriverError::exhausted(text, Resource::Memory);
    }
    // SAFETY: dds_strretcode returns a string literal for every code.
    let words = unsafe { CStr::from_ptr(dds_strretcode(code)) }.to_string_lossy();
    // Cyclone does not say which resource it lacked.
    let mut error = DriverError::new(format!("Cyclone DDS: {what}: {words}"));
    error.exhausted = Resource::missing_now();
    error
}

/// A domain with its participant and topic, and Cyclone's threads. Used by one thread: not Sync.
pub(crate) struct Domain {
    raw: NonNull<RawFleet>,
    one_thread: PhantomData<Cell<()>>,
}

/// A writer of a [`Domain`], alone in its publisher. Ends with the domain at the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DataWriter {
    handle: i32,
    /// See `pg_writer_history`.
    history: Option<NonNull<c_void>>,
}

/// A reader of a [`Domain`], alone in its subscriber. To be given back to [`Domain::free`]: it
/// does not know its domain.
pub(crate) struct Reader(NonNull<RawReader>);

/// The outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    Yes,
    /// The writer's history is full of messages that are not acknowledged.
    NotNow,
    Failed(i32),
}

impl Domain {
    /// Opens a domain under a number that is free in this process. Nothing is received while a
    /// reader has `limit` messages that are not taken; 0 is no limit.
    pub(crate) fn open(instance: u32, config: &str, limit: u32) -> Result<Self, String> {
        let config = CString::new(config).map_err(|e| e.to_string())?;
        let mut why = [0u8; 256];
        // SAFETY: `config` ends in a zero byte, and `why` has the length that is given.
        let raw = unsafe {
            pg_fleet_open(
                instance,
                config.as_ptr(),
                limit,
                why.as_mut_ptr().cast(),
                why.len() as u32,
            )
        };
        let Some(raw) = NonNull::new(raw) else {
            let text = CStr::from_bytes_until_nul(&why).unwrap_or_default();
            return Err(text.to_string_lossy().into_owned());
        };
        Ok(Domain {
            raw,
            one_thread: PhantomData,
        })
    }

    /// Whether [`Domain::traffic`] counts.
    pub(crate) fn counts(&self) -> bool {
        // SAFETY: the domain lives.
        unsafe { pg_wire_counts(self.raw.as_ptr()) }
    }

    pub(crate) fn traffic(&self) -> Traffic {
        let mut traffic = Traffic::default();
        // SAFETY: the domain lives, `traffic` is writable and has the layout of `struct pg_wire`.
        unsafe { pg_wire_read(self.raw.as_ptr(), &mut traffic) };
        traffic
    }

    pub(crate) fn writer(&self, partition: &CStr, qos: &Qos) -> Result<DataWriter, i32> {
        // SAFETY: the domain lives; the shim copies what it is given.
        let handle = unsafe { pg_writer_new(self.raw.as_ptr(), partition.as_ptr(), qos) };
        if handle < 0 {
            return Err(handle);
        }
        // SAFETY: the domain lives, and the writer is its.
        let history = unsafe { pg_writer_history(self.raw.as_ptr(), handle) };
        Ok(DataWriter {
            handle,
            history: NonNull::new(history.cast_mut()),
        })
    }

    /// Whether a write would be taken at present; `None` if that can only be tried.
    pub(crate) fn has_room(&self, writer: DataWriter) -> Option<bool> {
        // SAFETY: the domain lives, and with it the writer, unless it was given back to
        // `free_writer`, which takes the last copy that is used.
        writer.history.map(|h| unsafe { pg_has_room(h.as_ptr()) })
    }

    /// Sets whether a writer is held back: then [`Domain::wait`] ends whenever there may be room
    /// again, and [`Domain::heard`] returns true.
    pub(crate) fn hold_back(&self, held_back: bool) {
        // SAFETY: the domain lives, and this is its only thread.
        unsafe { pg_hold_back(self.raw.as_ptr(), held_back) };
    }

    /// Whether something was received since the last call that may have made room.
    pub(crate) fn has_received(&self) -> bool {
        // SAFETY: the domain lives, and this is its only thread.
        unsafe { pg_heard(self.raw.as_ptr()) }
    }

    #[inline]
    pub(crate) fn write(
        &self,
        writer: DataWriter,
        device: u32,
        head: &[u8],
        body: &[u8],
    ) -> Written {
        let (Ok(head_len), Ok(body_len)) = (u32::try_from(head.len()), u32::try_from(body.len()))
        else {
            return Written::Failed(0);
        };
        // SAFETY: the domain lives; both parts are readable for the length given, and are copied.
        let code = unsafe {
            pg_write(
                self.raw.as_ptr(),
                writer.handle,
                device,
                head.as_ptr(),
                head_len,
                body.as_ptr(),
                body_len,
            )
        };
        if code >= 0 {
            Written::Yes
        } else if code == timeout() {
            Written::NotNow
        } else {
            Written::Failed(code)
        }
    }

    /// Whether all of a writer's messages are acknowledged, after `ns` at most.
    pub(crate) fn acknowledged(&self, writer: DataWriter, ns: Nanos) -> bool {
        let ns = i64::try_from(ns).unwrap_or(i64::MAX);
        // SAFETY: the domain lives; handles are checked by Cyclone.
        unsafe { pg_wait_for_acks(self.raw.as_ptr(), writer.handle, ns) != timeout() }
    }

    pub(crate) fn free_writer(&self, writer: DataWriter) {
        // SAFETY: the domain lives; handles are checked by Cyclone.
        unsafe { pg_writer_free(self.raw.as_ptr(), writer.handle) };
    }

    /// A reader in `partitions`; see `pg_reader_new` for the rest.
    pub(crate) fn reader(
        &self,
        index: u32,
        partitions: &[CString],
        names: bool,
        qos: &Qos,
    ) -> Result<Reader, i32> {
        let pointers: Vec<*const c_char> = partitions.iter().map(|p| p.as_ptr()).collect();
        let mut error = 0;
        // SAFETY: the domain lives; `pointers` are strings that outlive the call and are copied.
        let raw = unsafe {
            pg_reader_new(
                self.raw.as_ptr(),
                index,
                pointers.as_ptr(),
                pointers.len() as u32,
                names,
                qos,
                &mut error,
            )
        };
        NonNull::new(raw).map(Reader).ok_or(error)
    }

    pub(crate) fn free(&self, reader: Reader) {
        // SAFETY: the reader is of this domain, which lives, and is never used again.
        unsafe { pg_reader_free(self.raw.as_ptr(), reader.0.as_ptr()) };
    }

    /// The index of a reader with something to take.
    #[inline]
    pub(crate) fn next_ready(&self) -> Option<u32> {
        // SAFETY: the domain lives, and this is its only thread.
        u32::try_from(unsafe { pg_next_ready(self.raw.as_ptr()) }).ok()
    }

    /// Whether [`Domain::next_ready`] would name one.
    #[inline]
    pub(crate) fn has_ready(&self) -> bool {
        // SAFETY: the domain lives, and this is its only thread.
        unsafe { pg_has_ready(self.raw.as_ptr()) }
    }

    /// Sleeps until a reader is ready, or until a point of CLOCK_MONOTONIC.
    pub(crate) fn wait(&self, until: Nanos) {
        // SAFETY: the domain lives, and this is its only thread.
        unsafe { pg_wait(self.raw.as_ptr(), until) };
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        // SAFETY: nothing of the domain is used after its end; readers were freed, or are dead
        // pointers that nobody follows.
        unsafe { pg_fleet_close(self.raw.as_ptr()) };
    }
}

impl DataWriter {
    /// Sends what was gathered.
    #[inline]
    pub(crate) fn flush(self) {
        // SAFETY: handles are checked by Cyclone.
        unsafe { dds_write_flush(self.handle) };
    }
}

/// Reusable slots for the messages taken from a reader.
pub(crate) struct Taken {
    samples: [RawSample; MOST],
    held: [*mut c_void; MOST],
    count: usize,
    n_held: u32,
}

/// A taken message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample<'a> {
    pub(crate) payload: &'a [u8],
    /// Handle of its writer.
    pub(crate) publication: u64,
    /// When it was written, ns of CLOCK_REALTIME.
    pub(crate) source_ns: i64,
}

impl Taken {
    pub(crate) fn new() -> Self {
        let empty = RawSample {
            payload: ptr::null(),
            publication: 0,
            source_ns: 0,
            len: 0,
            device: 0,
        };
        Taken {
            samples: [empty; MOST],
            held: [ptr::null_mut(); MOST],
            count: 0,
            n_held: 0,
        }
    }

    /// Takes what a reader has, giving back what was taken before. Says whether there may be
    /// more.
    #[inline]
    pub(crate) fn take(&mut self, reader: &Reader) -> Result<bool, i32> {
        self.release();
        // SAFETY: the reader lives; both arrays have MOST slots.
        let count = unsafe {
            pg_take(
                reader.0.as_ptr(),
                self.samples.as_mut_ptr(),
                self.held.as_mut_ptr(),
                MOST as u32,
                &mut self.n_held,
            )
        };
        self.count = usize::try_from(count).map_err(|_| count)?;
        Ok(self.n_held as usize == MOST)
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> Sample<'_> {
        let raw = &self.samples[..self.count][index];
        Sample {
            // SAFETY: the shim checked the length against what arrived, and `held` keeps the
            // bytes until `release`, which needs `self` mutably.
            payload: unsafe { std::slice::from_raw_parts(raw.payload, raw.len as usize) },
            publication: raw.publication,
            source_ns: raw.source_ns,
        }
    }

    /// Gives back what was taken.
    #[inline]
    pub(crate) fn release(&mut self) {
        self.count = 0;
        if self.n_held > 0 {
            // SAFETY: `held` has so many references of ours, which are forgotten here.
            unsafe { pg_release(self.held.as_mut_ptr(), self.n_held) };
            self.n_held = 0;
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.release();
    }
}

impl Reader {
    /// The partition of a writer that matched this reader, if it is known.
    pub(crate) fn partition_of(&self, publication: u64) -> Option<String> {
        let mut text = [0u8; 1024];
        // SAFETY: the reader lives, `text` has the length that is given.
        let len = unsafe {
            pg_partition_of(
                self.0.as_ptr(),
                publication,
                text.as_mut_ptr().cast(),
                text.len() as u32,
            )
        };
        let len = usize::try_from(len).ok()?;
        Some(String::from_utf8_lossy(&text[..len]).into_owned())
    }

    /// Deadlines that its writers missed.
    pub(crate) fn deadlines_missed(&self) -> u32 {
        // SAFETY: the reader lives.
        unsafe { pg_deadlines_missed(self.0.as_ptr()) }
    }

    /// How many writers did not match because of their QoS.
    pub(crate) fn incompatible(&self) -> u32 {
        // SAFETY: the reader lives.
        unsafe { pg_incompatible(self.0.as_ptr()) }
    }
}

#[inline]
fn timeout() -> i32 {
    // SAFETY: returns a constant.
    unsafe { pg_timeout() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    unsafe extern "C" {
        fn pg_message_parse(
            cdr: *const u8,
            size: usize,
            key_only: bool,
            device: *mut u32,
            payload_len: *mut u32,
        ) -> bool;
    }

    fn parse(cdr: &[u8], key_only: bool) -> Option<(u32, u32)> {
        let (mut device, mut len) = (0, 0);
        // SAFETY: `cdr` is readable for its length.
        let good =
            unsafe { pg_message_parse(cdr.as_ptr(), cdr.len(), key_only, &mut device, &mut len) };
        good.then_some((device, len))
    }

    /// The same, in Rust.
    fn reference(cdr: &[u8], key_only: bool) -> Option<(u32, u32)> {
        let word = |at: usize| {
            let bytes: [u8; 4] = cdr.get(at..at + 4)?.try_into().ok()?;
            Some(match cdr[1] {
                0 | 6 => u32::from_be_bytes(bytes),
                _ => u32::from_le_bytes(bytes),
            })
        };
        if *cdr.first()? != 0 || !matches!(*cdr.get(1)?, 0 | 1 | 6 | 7) {
            return None;
        }
        let device = word(4)?;
        if key_only {
            return Some((device, 0));
        }
        let len = word(8)?;
        (len as usize <= cdr.len() - 12).then_some((device, len))
    }

    proptest! {
        #[test]
        fn the_parser_takes_what_it_should_and_nothing_else(
            kind in 0u8..9, key_only: bool, rest in proptest::collection::vec(0u8..20, 0..40),
        ) {
            let mut cdr = vec![0, kind, 0, 0];
            cdr.extend(rest);
            for len in 0..=cdr.len() {
                prop_assert_eq!(parse(&cdr[..len], key_only), reference(&cdr[..len], key_only));
            }
        }

        #[test]
        fn no_bytes_upset_the_parser(cdr in proptest::collection::vec(any::<u8>(), 0..64)) {
            prop_assert_eq!(parse(&cdr, false), reference(&cdr, false));
        }
    }

    #[test]
    fn this_is_the_version_it_is_written_for() {
        assert!(version().starts_with("0.10."), "{}", version());
    }
}
