//! A store that speaks as much of S3 as is used: objects in memory, and faults that are asked for.
//!
//! It stores before it answers, so that what happens in between can be planted. It checks that a request is signed with
//! the key that it knows, not the signature; a test against a server that others wrote does.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The access key that it takes, and the secret that belongs to it.
pub const KEY: (&str, &str) = ("testing-access-key", "testing-secret-that-nobody-may-see");

/// How it answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answer {
    /// As a store does.
    #[default]
    Works,
    /// 403, and stores nothing. The answer repeats the headers of the request.
    Refuses,
    /// Stores what is put, and does not answer until that changes.
    Holds,
    /// Says that it has stored, and stores half of it.
    Halves,
    /// As a store does that takes no conditions: 501 where one is asked for.
    TakesNoConditions,
}

#[derive(Default)]
struct StoreState {
    answer: Answer,
    /// The access keys that it takes; [`KEY`] alone if there are none here.
    keys: Vec<String>,
    objects: BTreeMap<String, Vec<u8>>,
    puts: u64,
    ended: bool,
    connections: Vec<TcpStream>,
}

/// A store on a port of the loopback address.
pub struct ObjectStore {
    pub address: SocketAddr,
    state: Arc<Mutex<StoreState>>,
    listening: Option<JoinHandle<()>>,
}

fn lock(state: &Mutex<StoreState>) -> MutexGuard<'_, StoreState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ObjectStore {
    /// One with no objects.
    pub fn start() -> ObjectStore {
        ObjectStore::start_at("127.0.0.1:0", BTreeMap::new())
    }

    /// One at an address, with the objects of an earlier one.
    pub fn start_at(address: &str, objects: BTreeMap<String, Vec<u8>>) -> ObjectStore {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(StoreState {
            objects,
            ..StoreState::default()
        }));
        let shared = state.clone();
        let listening = std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if lock(&shared).ended {
                    return;
                }
                lock(&shared).connections.extend(stream.try_clone());
                let state = shared.clone();
                std::thread::spawn(move || serve(&stream, &state));
            }
        });
        ObjectStore {
            address,
            state,
            listening: Some(listening),
        }
    }

    /// http://HOST:PORT.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The lines of an `[upload]` table for a bucket and prefix; the credentials are written to a file.
    pub fn upload(&self, to: &str, credentials: &std::path::Path) -> String {
        let (id, secret) = KEY;
        std::fs::write(
            credentials,
            format!("AWS_ACCESS_KEY_ID={id}\nAWS_SECRET_ACCESS_KEY={secret}\n"),
        )
        .unwrap();
        let endpoint = self.endpoint();
        format!(
            "[upload]\nto = {to:?}\nendpoint = {endpoint:?}\nregion = \"here\"\ncredentials-file = {credentials:?}\n"
        )
    }

    pub fn answer(&self, answer: Answer) {
        lock(&self.state).answer = answer;
    }

    /// From now on it takes these access keys alone, and says of others that they have expired.
    pub fn take_keys(&self, keys: &[&str]) {
        lock(&self.state).keys = keys.iter().map(|&key| key.to_owned()).collect();
    }

    /// All objects, by BUCKET/PATH.
    pub fn objects(&self) -> BTreeMap<String, Vec<u8>> {
        lock(&self.state).objects.clone()
    }

    /// Changes the objects behind everyone's back.
    pub fn change(&self, change: impl FnOnce(&mut BTreeMap<String, Vec<u8>>)) {
        change(&mut lock(&self.state).objects);
    }

    /// How many objects were put, each as often as it was.
    pub fn put_count(&self) -> u64 {
        lock(&self.state).puts
    }

    /// Ends it, and returns its objects.
    pub fn stop(mut self) -> BTreeMap<String, Vec<u8>> {
        self.close();
        self.objects()
    }

    fn close(&mut self) {
        let mut state = lock(&self.state);
        state.ended = true;
        for connection in state.connections.drain(..) {
            let _ = connection.shutdown(std::net::Shutdown::Both);
        }
        drop(state);
        if let Some(listening) = self.listening.take() {
            // Wakes the thread that listens.
            let _ = TcpStream::connect(self.address);
            let _ = listening.join();
        }
    }
}

impl Drop for ObjectStore {
    fn drop(&mut self) {
        self.close();
    }
}

/// A request, without what nobody asks for here.
struct Request {
    method: String,
    /// BUCKET/PATH, decoded.
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    fn read(from: &mut impl BufRead) -> Option<Request> {
        let mut line = String::new();
        from.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let mut words = line.split_whitespace();
        let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            from.read_line(&mut line).ok()?;
            match line.trim_end().split_once(": ") {
                Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.to_owned())),
                None => break,
            }
        }
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let mut body = vec![0; length.map_or(0, |(_, length)| length.parse().unwrap())];
        from.read_exact(&mut body).ok()?;
        let path = target.split('?').next()?;
        Some(Request {
            method,
            path: decoded(path.trim_start_matches('/')),
            headers,
            body,
        })
    }

    /// Whether it asks that no object be replaced.
    fn creates(&self) -> bool {
        let asks = |(name, value): &(String, String)| name == "if-none-match" && value == "*";
        self.headers.iter().any(asks)
    }

    fn is_signed_with(&self, key: &str) -> bool {
        let signed = |(name, value): &(String, String)| {
            name == "authorization" && value.contains(&format!("Credential={key}/"))
        };
        self.headers.iter().any(signed)
    }

    fn header(&self, name: &str) -> &str {
        let mut headers = self.headers.iter();
        let found = headers.find(|(one, _)| one == name);
        found.map_or("", |(_, value)| value)
    }
}

/// A text whose bytes may be written as `%3D`.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let code = |rest: &mut std::str::Bytes<'_>| {
            let digits = [rest.next()?, rest.next()?];
            u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()
        };
        bytes.push(if byte == b'%' {
            code(&mut rest).unwrap()
        } else {
            byte
        });
    }
    String::from_utf8(bytes).unwrap()
}

/// A tag that follows from the content, as an ETag does.
fn tag(bytes: &[u8]) -> String {
    use std::hash::{DefaultHasher, Hasher};
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    format!("\"{:016x}\"", hasher.finish())
}

fn serve(stream: &TcpStream, state: &Mutex<StoreState>) {
    let mut reader = BufReader::new(stream);
    while let Some(request) = Request::read(&mut reader) {
        let answer = answer(&request, state);
        while lock(state).answer == Answer::Holds {
            if lock(state).ended {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let mut out = stream;
        if out.write_all(&answer).is_err() {
            return;
        }
    }
}

fn answer(request: &Request, state: &Mutex<StoreState>) -> Vec<u8> {
    let mut state = lock(state);
    let is_expired =
        !state.keys.is_empty() && !state.keys.iter().any(|key| request.is_signed_with(key));
    if is_expired {
        // As S3 says it, which repeats the token.
        let token = request.header("x-amz-security-token");
        let body = format!(
            "<?xml version=\"1.0\"?>\n<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message><Token-0>{token}</Token-0></Error>"
        );
        return response("400 Bad Request", &[], body.as_bytes(), request);
    }
    let is_signed = !state.keys.is_empty() || request.is_signed_with(KEY.0);
    if !is_signed || state.answer == Answer::Refuses {
        let body = format!("<Error><Message>{:?}</Message></Error>", request.headers);
        return response("403 Forbidden", &[], body.as_bytes(), request);
    }
    let is_half = state.answer == Answer::Halves;
    match request.method.as_str() {
        "PUT" if request.creates() && state.answer == Answer::TakesNoConditions => {
            let body = b"<Error><Code>NotImplemented</Code></Error>";
            response("501 Not Implemented", &[], body, request)
        }
        "PUT" if request.creates() && state.objects.contains_key(&request.path) => {
            let body = b"<Error><Code>PreconditionFailed</Code></Error>";
            response("412 Precondition Failed", &[], body, request)
        }
        "PUT" => {
            let body = request.body.clone();
            let tag = tag(&body);
            state.puts += 1;
            let len = if is_half { body.len() / 2 } else { body.len() };
            state
                .objects
                .insert(request.path.clone(), body[..len].to_vec());
            response("200 OK", &[("ETag", tag)], b"", request)
        }
        "GET" | "HEAD" => match state.objects.get(&request.path) {
            None => response(
                "404 Not Found",
                &[],
                b"<Error><Code>NoSuchKey</Code></Error>",
                request,
            ),
            Some(bytes) => response("200 OK", &[("ETag", tag(bytes))], bytes, request),
        },
        other => panic!("a request that nobody makes: {other}"),
    }
}

fn response(status: &str, headers: &[(&str, String)], body: &[u8], request: &Request) -> Vec<u8> {
    let mut head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nLast-Modified: Thu, 26 Nov 2026 07:00:00 GMT\r\n",
        body.len()
    );
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    let mut response = (head + "\r\n").into_bytes();
    if request.method != "HEAD" {
        response.extend_from_slice(body);
    }
    response
}
