use proptest::prelude::*;
use tungstenite::handshake::derive_accept_key;

use super::*;

/// A frame of a server.
fn sent(opcode: u8, is_final: bool, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let header = FrameHeader {
        is_final,
        opcode: OpCode::from(opcode),
        ..FrameHeader::default()
    };
    header.format(payload.len() as u64, &mut out).unwrap();
    out.extend_from_slice(payload);
    out
}

/// A connection that the server has accepted.
fn open() -> WebSocket {
    WebSocket {
        handshake: None,
        frames: Frames::default(),
    }
}

/// Takes in a part of what a server sends; what it carries is appended to `input`.
fn take(socket: &mut WebSocket, input: &mut Vec<u8>, part: &[u8]) -> Result<(), String> {
    let mut part = part.to_vec();
    let kept = socket.take(&mut part)?;
    input.extend_from_slice(&part[..kept]);
    Ok(())
}

/// What frames of a client carry.
fn unmasked(mut bytes: &[u8]) -> Vec<(OpCode, Vec<u8>)> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let mut cursor = std::io::Cursor::new(bytes);
        let (header, len) = FrameHeader::parse(&mut cursor).unwrap().unwrap();
        let (at, len) = (cursor.position() as usize, len as usize);
        let mask = header.mask.expect("a client masks");
        let masked = bytes[at..at + len].iter().zip(mask.iter().cycle());
        all.push((
            header.opcode,
            masked.map(|(byte, mask)| byte ^ mask).collect(),
        ));
        bytes = &bytes[at + len..];
    }
    all
}

/// The key of a request.
fn key(request: &[u8]) -> String {
    let request = String::from_utf8(request.to_vec()).unwrap();
    let (_, rest) = request.split_once("Sec-WebSocket-Key: ").unwrap();
    rest.split("\r\n").next().unwrap().to_owned()
}

fn accepts(key: &str) -> String {
    let accept = derive_accept_key(key.as_bytes());
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n"
    )
}

/// What becomes of an answer to a request that comes in parts of so many bytes.
fn answered(answer: impl Fn(&str) -> Vec<u8>, part: usize) -> Result<(WebSocket, Vec<u8>), String> {
    let mut request = Vec::new();
    let mut socket = WebSocket::begin("ws://h:80/mqtt?a=b", "mqtt", &mut request).unwrap();
    let mut input = Vec::new();
    for part in answer(&key(&request)).chunks(part) {
        take(&mut socket, &mut input, part)?;
    }
    Ok((socket, input))
}

#[test]
fn a_request_asks_for_mqtt_and_what_follows_the_answer_is_taken() {
    let mut request = Vec::new();
    let mut socket =
        WebSocket::begin("wss://h.example:8084/a/b?c=d", "mqtt", &mut request).unwrap();
    let text = String::from_utf8(request.clone()).unwrap();
    assert!(text.starts_with("GET /a/b?c=d HTTP/1.1\r\n"), "{text}");
    for line in [
        "Host: h.example:8084",
        "Sec-WebSocket-Protocol: mqtt",
        "Sec-WebSocket-Version: 13",
    ] {
        assert!(text.contains(&format!("\r\n{line}\r\n")), "{text}");
    }
    assert!(socket.is_beginning());
    let mut input = Vec::new();
    let mut answer = accepts(&key(&request)).into_bytes();
    answer.extend(sent(2, true, b"connack"));
    take(&mut socket, &mut input, &answer).unwrap();
    assert_eq!(input, b"connack");
    assert!(!socket.is_beginning());
    let mut out = b"beforeconnect".to_vec();
    socket.frame(&mut out, 6);
    assert_eq!(&out[..6], b"before");
    assert_eq!(
        unmasked(&out[6..]),
        [(OpCode::Data(Data::Binary), b"connect".to_vec())]
    );
    for part in [1, 2, 7, 10_000] {
        let answer = |key: &str| [accepts(key).into_bytes(), sent(2, true, b"x")].concat();
        let (_, input) = answered(answer, part).unwrap();
        assert_eq!(input, b"x", "in parts of {part}");
    }
}

#[test]
fn answers_that_accept_nothing_are_told() {
    let without = |line: &'static str| {
        move |key: &str| {
            let lines = accepts(key);
            let kept = lines
                .split_inclusive("\r\n")
                .filter(|one| !one.starts_with(line));
            kept.collect::<String>().into_bytes()
        }
    };
    type Answer = Box<dyn Fn(&str) -> Vec<u8>>;
    let cases: [(Answer, &str); 9] = [
        (
            Box::new(|_| b"HTTP/1.1 404 Not Found\r\n\r\n".to_vec()),
            "HTTP 404",
        ),
        (
            Box::new(|_| b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 9\r\n\r\n".to_vec()),
            "HTTP 401",
        ),
        (
            Box::new(|_| vec![0x15, 3, 3, 0, 2, 2, 70]),
            "no HTTP server",
        ),
        (Box::new(|_| vec![0x20, 3, 0, 0, 0]), "no HTTP server"),
        (
            Box::new(|_| [b"HTTP/1.1 101 X\r\n".to_vec(), b"a: b\r\n".repeat(10_000)].concat()),
            "longer than 16 KiB",
        ),
        (Box::new(|_| b"HTTP/1.1 \0\r\n\r\n".to_vec()), ""),
        (
            Box::new(without("Sec-WebSocket-Protocol")),
            "subprotocol `mqtt`",
        ),
        (Box::new(without("Upgrade")), "Upgrade"),
        (
            Box::new(|_| accepts("b3RoZXI=").into_bytes()),
            "Sec-WebSocket-Accept",
        ),
    ];
    for (answer, words) in cases {
        for part in [1, 10_000] {
            let told = answered(&answer, part).err();
            let told = told.unwrap_or_else(|| panic!("{words} was accepted"));
            assert!(told.contains(words), "{words}: {told}");
        }
    }
}

#[test]
fn frames_that_a_server_may_not_send_are_told() {
    let mut masked = sent(2, true, b"");
    masked[1] |= 0x80;
    masked.extend([0; 4]);
    let mut extended = sent(2, true, b"");
    extended[0] |= 0x40;
    for (bytes, words) in [
        (masked, "masked"),
        (extended, "extension"),
        (sent(1, true, b"text"), "text"),
        (sent(3, true, b""), "opcode"),
        (sent(0, true, b""), "never began"),
        (
            [sent(2, false, b"a"), sent(2, true, b"b")].concat(),
            "within another",
        ),
        (sent(9, false, b""), "not short"),
        (sent(9, true, &[0; 126]), "not short"),
    ] {
        let mut input = bytes;
        let told = open().take(&mut input).unwrap_err();
        assert!(told.to_lowercase().contains(words), "{words}: {told}");
    }
}

#[test]
fn a_frame_of_any_length_takes_no_memory() {
    let mut socket = open();
    let mut header = vec![0x82, 127];
    header.extend((u64::MAX >> 1).to_be_bytes());
    assert_eq!(socket.take(&mut header), Ok(0));
    let mut part = vec![7; 1 << 20];
    for _ in 0..64 {
        let carried = socket.take(&mut part);
        assert_eq!(
            carried,
            Ok(1 << 20),
            "what it carries is whoever takes it's"
        );
    }
    assert!(socket.frames.capacity() == 0 && !socket.owes_pong());
    // Of a flood of pings the last one is answered.
    let mut socket = open();
    let mut pings = sent(9, true, &[1; 125]).repeat(1000);
    pings.extend(sent(9, true, b"last"));
    assert_eq!(socket.take(&mut pings), Ok(0));
    let mut out = Vec::new();
    socket.answer(&mut out);
    assert_eq!(
        unmasked(&out),
        [(OpCode::Control(Control::Pong), b"last".to_vec())]
    );
    assert!(!socket.owes_pong());
}

#[test]
fn nothing_is_taken_from_behind_the_end() {
    let mut socket = open();
    let close = [&1008u16.to_be_bytes()[..], b"why"].concat();
    let mut input = [
        sent(2, true, b"a"),
        sent(8, true, &close),
        sent(2, true, b"b"),
    ]
    .concat();
    assert_eq!(socket.take(&mut input), Ok(1));
    assert_eq!(
        (&input[..1], socket.closed()),
        (&b"a"[..], Some(Some(1008)))
    );
    let mut socket = open();
    socket.take(&mut sent(8, true, b"")).unwrap();
    assert_eq!(socket.closed(), Some(None));
}

#[test]
fn long_bytes_go_out_in_frames_that_servers_take() {
    for len in [0, 1, 125, 126, MOST, MOST + 1, 3 * MOST, 3 * MOST + 126] {
        let plain: Vec<u8> = (0..len).map(|n| n as u8).collect();
        let mut out = [b"x", &plain[..]].concat();
        open().frame(&mut out, 1);
        let frames = unmasked(&out[1..]);
        assert_eq!(frames.len(), len.div_ceil(MOST), "{len} bytes");
        assert!(frames.iter().all(|(_, one)| one.len() <= MOST));
        let carried: Vec<u8> = frames.into_iter().flat_map(|(_, one)| one).collect();
        assert!(carried == plain && out[0] == b'x', "{len} bytes");
    }
}

proptest! {
    #[test]
    fn what_frames_carry_is_the_same_however_it_comes(
        messages in proptest::collection::vec((proptest::collection::vec(any::<u8>(), 0..300), 1usize..4, any::<bool>()), 0..8),
        part in 1usize..40,
    ) {
        let (mut bytes, mut carried) = (Vec::new(), Vec::new());
        for (payload, frames, pings) in &messages {
            carried.extend_from_slice(payload);
            let size = (payload.len() / frames).max(1);
            let mut parts: Vec<&[u8]> = payload.chunks(size).collect();
            parts.push(&[]);
            let last = parts.len() - 1;
            for (nth, part) in parts.iter().enumerate() {
                bytes.extend(sent(if nth == 0 { 2 } else { 0 }, nth == last, part));
                if *pings {
                    bytes.extend(sent(9, true, b"ping"));
                }
            }
        }
        let (mut socket, mut input) = (open(), b"before".to_vec());
        for part in bytes.chunks(part) {
            take(&mut socket, &mut input, part).unwrap();
        }
        prop_assert_eq!(&input[..6], b"before");
        prop_assert_eq!(&input[6..], &carried[..]);
    }

    #[test]
    fn no_bytes_of_a_server_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), accepted in any::<bool>()) {
        let mut socket = if accepted { open() } else { WebSocket::begin("ws://h/", "mqtt", &mut Vec::new()).unwrap() };
        let mut input = bytes;
        let carried = socket.take(&mut input);
        prop_assert!(carried.is_err() || carried.is_ok_and(|carried| carried <= input.len()));
    }
}
