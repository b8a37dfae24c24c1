//! The shim's C interface (`shim/shim.h`) and owners of what it creates.

use std::ffi::{CString, c_char, c_int};
use std::ptr::NonNull;

use pubgauge_dds::library::Traffic;
use pubgauge_driver::{DriverError, Resource};

/// `pgf_config`, field for field.
#[repr(C)]
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub domain: u32,
    pub peers: u32,
    pub transport: u32,
    pub multicast: u32,
    pub intraprocess: u32,
    pub max_payload: u32,
    pub send_buffer_bytes: i32,
    pub receive_buffer_bytes: i32,
    pub max_message_bytes: i32,
    pub multicast_hops: i32,
    pub reliable: u32,
    pub reader_transient_local: u32,
    pub writer_transient_local: u32,
    pub asynchronous: u32,
    pub piggyback: u32,
    pub data_sharing: u32,
    pub writer_depth: i32,
    pub reader_depth: i32,
    pub writer_samples: i32,
    pub reader_samples: i32,
    pub heartbeat_ns: i64,
    pub nack_response_ns: i64,
    pub heartbeat_response_ns: i64,
    pub lifespan_ns: i64,
    pub flow_bytes_per_period: u32,
    pub flow_period_ms: u32,
    pub flow_scheduler: i32,
    pub own_host: u32,
    pub hosts: u32,
    pub host: [u32; MOST_HOSTS],
}

/// Most hosts of a network.
pub(crate) const MOST_HOSTS: usize = 256;

/// `pgf_sample`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawSample {
    data: *const u8,
    len: usize,
    /// When it was written, by the writer's CLOCK_REALTIME, ns.
    pub source_ns: i64,
}

#[repr(C)]
struct RawParticipant {
    _private: [u8; 0],
}
#[repr(C)]
struct RawWriter {
    _private: [u8; 0],
}
#[repr(C)]
struct RawReader {
    _private: [u8; 0],
}

unsafe extern "C" {
    fn pgf_open(
        config: *const Config,
        error: *mut c_char,
        len: usize,
        no_ports: *mut c_int,
    ) -> *mut RawParticipant;
    fn pgf_close(p: *mut RawParticipant);
    fn pgf_traffic_read(p: *const RawParticipant, out: *mut Traffic);
    fn pgf_sleep(p: *mut RawParticipant, arrivals: i64, ns: i64);
    fn pgf_arrivals(p: *const RawParticipant) -> i64;
    fn pgf_ready(p: *mut RawParticipant, out: *mut u32, len: usize) -> usize;
    fn pgf_writer_create(
        p: *mut RawParticipant,
        partition: *const c_char,
        device: u32,
        priority: i32,
        error: *mut c_char,
        len: usize,
    ) -> *mut RawWriter;
    fn pgf_write(
        w: *mut RawWriter,
        head: *const u8,
        head_len: usize,
        body: *const u8,
        body_len: usize,
    ) -> c_int;
    fn pgf_writer_settled(w: *mut RawWriter) -> c_int;
    fn pgf_writer_delete(w: *mut RawWriter, wait_ns: i64);
    fn pgf_reader_create(
        p: *mut RawParticipant,
        number: u32,
        partitions: *const *const c_char,
        count: usize,
        error: *mut c_char,
        len: usize,
    ) -> *mut RawReader;
    fn pgf_reader_partitions(
        r: *mut RawReader,
        partitions: *const *const c_char,
        count: usize,
    ) -> c_int;
    fn pgf_take(r: *mut RawReader, out: *mut RawSample, max: c_int, more: *mut c_int) -> c_int;
    fn pgf_reader_delete(r: *mut RawReader);
}

/// Most samples of one take.
pub(crate) const GROUP: usize = 64;

/// Buffer for the error text that the shim may write.
struct Words([u8; 256]);

impl Words {
    fn new() -> Self {
        Words([0; 256])
    }

    fn pointer(&mut self) -> *mut c_char {
        self.0.as_mut_ptr().cast()
    }

    fn error(&self, what: &str) -> DriverError {
        let end = self.0.iter().position(|b| *b == 0).unwrap_or(0);
        let words = String::from_utf8_lossy(&self.0[..end]);
        let text = format!("{what}: {words}");
        // Fast DDS seldom says which resource it lacked.
        match Resource::missing_now() {
            Some(resource) => DriverError::exhausted(text, resource),
            None => DriverError::with_hint(
                text,
                "the settings that were asked for may not fit together: see `pubgauge plan` for \
                 what each became",
            ),
        }
    }
}

/// A domain participant with its topic. Outlives its writers and readers: the fleet drops those
/// first.
#[derive(Debug)]
pub(crate) struct Participant(NonNull<RawParticipant>);

/// A data writer in a publisher of its own, whose partition is the topic.
#[derive(Debug)]
pub(crate) struct DataWriter(NonNull<RawWriter>);

/// A data reader in a subscriber of its own, whose partitions are the filters.
#[derive(Debug)]
pub(crate) struct Reader(NonNull<RawReader>);

/// The outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    Yes,
    NoRoom,
    Failed,
}

impl Participant {
    pub(crate) fn open(config: &Config) -> Result<Self, DriverError> {
        let mut words = Words::new();
        let mut no_ports = 0;
        // SAFETY: a configuration of the layout the shim expects, a buffer with its length, and a
        // writable int.
        let raw = unsafe { pgf_open(config, words.pointer(), words.0.len(), &mut no_ports) };
        NonNull::new(raw).map(Participant).ok_or_else(|| {
            let mut error = words.error(&format!("no participant in DDS domain {}", config.domain));
            if no_ports != 0 {
                error.exhausted = Some(Resource::Ports);
                error.hint = Some(
                    "each worker needs two UDP ports of the domain: use fewer workers, or raise \
                     native.fastdds.discovery-peers"
                        .into(),
                );
            }
            error
        })
    }

    pub(crate) fn traffic(&self) -> Traffic {
        let mut traffic = Traffic::default();
        // SAFETY: a live participant and a place to write to, of the layout of `pgf_traffic`.
        unsafe { pgf_traffic_read(self.0.as_ptr(), &mut traffic) };
        traffic
    }

    /// Sleeps for at most `ns`, or until a reader gets data, or a signal comes; with `arrivals`, also
    /// until more than so many datagrams have come.
    pub(crate) fn sleep(&self, arrivals: Option<i64>, ns: i64) {
        // SAFETY: a live participant.
        unsafe { pgf_sleep(self.0.as_ptr(), arrivals.unwrap_or(-1), ns) }
    }

    /// Datagrams that have come and been handled.
    pub(crate) fn arrivals(&self) -> i64 {
        // SAFETY: a live participant.
        unsafe { pgf_arrivals(self.0.as_ptr()) }
    }

    /// Numbers of readers that have got something, into `out`; returns how many.
    pub(crate) fn ready(&self, out: &mut [u32]) -> usize {
        // SAFETY: a live participant, a buffer with its length.
        unsafe { pgf_ready(self.0.as_ptr(), out.as_mut_ptr(), out.len()) }
    }

    /// `priority`: fastdds.sfc.priority, -10 (first) to 10 (last).
    pub(crate) fn writer(
        &self,
        partition: &str,
        device: u32,
        priority: Option<i32>,
    ) -> Result<DataWriter, DriverError> {
        let name = c_string(partition)?;
        let mut words = Words::new();
        // SAFETY: a live participant, a NUL-terminated string, a buffer with its length.
        let raw = unsafe {
            pgf_writer_create(
                self.0.as_ptr(),
                name.as_ptr(),
                device,
                priority.unwrap_or(127),
                words.pointer(),
                words.0.len(),
            )
        };
        NonNull::new(raw)
            .map(DataWriter)
            .ok_or_else(|| words.error(&format!("no data writer for {partition:?}")))
    }

    pub(crate) fn reader(&self, number: u32, partitions: &[String]) -> Result<Reader, DriverError> {
        let names = c_strings(partitions)?;
        let pointers: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
        let mut words = Words::new();
        // SAFETY: a live participant, `pointers.len()` NUL-terminated strings that live until
        // after the call, a buffer with its length.
        let raw = unsafe {
            pgf_reader_create(
                self.0.as_ptr(),
                number,
                pointers.as_ptr(),
                pointers.len(),
                words.pointer(),
                words.0.len(),
            )
        };
        NonNull::new(raw)
            .map(Reader)
            .ok_or_else(|| words.error(&format!("no data reader for {partitions:?}")))
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        // SAFETY: the only owner; nothing of it is used after.
        unsafe { pgf_close(self.0.as_ptr()) }
    }
}

impl DataWriter {
    #[inline]
    pub(crate) fn write(&self, head: &[u8], body: &[u8]) -> Written {
        // SAFETY: a live writer and two slices; the shim copies them before it returns.
        let code = unsafe {
            pgf_write(
                self.0.as_ptr(),
                head.as_ptr(),
                head.len(),
                body.as_ptr(),
                body.len(),
            )
        };
        match code {
            0 => Written::Yes,
            1 => Written::NoRoom,
            _ => Written::Failed,
        }
    }

    /// Whether all matched readers have acknowledged everything.
    pub(crate) fn settled(&self) -> bool {
        // SAFETY: a live writer.
        unsafe { pgf_writer_settled(self.0.as_ptr()) != 0 }
    }

    /// Ends it after its samples are acknowledged, or after `wait_ns`.
    pub(crate) fn finish(self, wait_ns: i64) {
        // SAFETY: the only owner; not dropped again, because Writer has no Drop that frees after
        // `forget`.
        unsafe { pgf_writer_delete(self.0.as_ptr(), wait_ns) };
        std::mem::forget(self);
    }
}

impl Drop for DataWriter {
    fn drop(&mut self) {
        // SAFETY: the only owner.
        unsafe { pgf_writer_delete(self.0.as_ptr(), 0) };
    }
}

impl Reader {
    pub(crate) fn set_partitions(&self, partitions: &[String]) -> Result<(), DriverError> {
        let names = c_strings(partitions)?;
        let pointers: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
        // SAFETY: a live reader and NUL-terminated strings that live until after the call.
        let code =
            unsafe { pgf_reader_partitions(self.0.as_ptr(), pointers.as_ptr(), pointers.len()) };
        if code == 0 {
            Ok(())
        } else {
            Err(DriverError::new(format!(
                "Fast DDS refused the partitions {partitions:?}"
            )))
        }
    }

    /// Takes up to `out.len()` samples. Returns how many have data, and whether there may be more;
    /// `None` if the library failed.
    #[inline]
    pub(crate) fn take(&mut self, out: &mut [RawSample]) -> Option<(usize, bool)> {
        let max = out.len().min(GROUP) as c_int;
        let mut more = 0;
        // SAFETY: a live reader and room for `max` samples.
        let filled = unsafe { pgf_take(self.0.as_ptr(), out.as_mut_ptr(), max, &mut more) };
        usize::try_from(filled)
            .ok()
            .map(|filled| (filled, more != 0))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // SAFETY: the only owner.
        unsafe { pgf_reader_delete(self.0.as_ptr()) };
    }
}

impl RawSample {
    pub(crate) const EMPTY: RawSample = RawSample {
        data: std::ptr::null(),
        len: 0,
        source_ns: 0,
    };

    /// The payload.
    ///
    /// # Safety
    /// Nothing was taken from any reader of the same participant since this sample was.
    #[inline]
    pub(crate) unsafe fn payload(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: the shim's buffer of this sample, which the caller says is still as it was.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }
}

fn c_string(text: &str) -> Result<CString, DriverError> {
    CString::new(text).map_err(|_| DriverError::new(format!("{text:?} holds a zero byte")))
}

fn c_strings(texts: &[String]) -> Result<Vec<CString>, DriverError> {
    texts.iter().map(|text| c_string(text)).collect()
}
