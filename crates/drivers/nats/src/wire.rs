//! Decodes what a server sends, in place.

/// Longest line that is accepted, in bytes: INFO lists all servers of a cluster.
const LINE_MAX: usize = 64 << 10;

/// One operation of the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Op<'a> {
    /// MSG, or HMSG.
    Message {
        subject: &'a [u8],
        /// Its header fields as they came; empty of MSG.
        header: &'a [u8],
        payload: &'a [u8],
    },
    Info(&'a [u8]),
    Ping,
    Pong,
    Ok,
    /// -ERR, with what the server says in quotes.
    Error(&'a [u8]),
}

/// Reads `MSG SUBJECT SID [REPLY-TO] BYTES` and `HMSG SUBJECT SID [REPLY-TO] HEADER-BYTES BYTES`:
/// the subject, the bytes of the header at the front of the message, and those of the message.
#[inline]
fn message(line: &[u8]) -> Option<(&[u8], usize, usize)> {
    let mut words = line.split(|b| *b == b' ').filter(|word| !word.is_empty());
    let has_header = match words.next()? {
        b"MSG" => false,
        b"HMSG" => true,
        _ => return None,
    };
    let subject = words.next()?;
    // The sizes come last.
    let mut size = || words.next_back().and_then(digits);
    let total = size()?;
    let header = if has_header { size()? } else { 0 };
    // The number of the subscription must remain.
    (words.next().is_some() && header <= total).then_some((subject, header, total))
}

/// A number of up to nine digits.
#[inline]
fn digits(word: &[u8]) -> Option<usize> {
    let digit = |n: usize, b: &u8| b.is_ascii_digit().then(|| n * 10 + usize::from(b - b'0'));
    let word = Some(word).filter(|word| word.len() < 10)?;
    word.iter().try_fold(0, digit)
}

/// The first line of `bytes` without its end, and its length with it; `None` if it is not whole.
#[inline]
fn line(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let end = memchr::memchr(b'\n', &bytes[..bytes.len().min(LINE_MAX)])?;
    let line = &bytes[..end];
    Some((line.strip_suffix(b"\r").unwrap_or(line), end + 1))
}

/// Length in bytes of the message that begins like this, its line included.
pub(crate) fn message_len(beginning: &[u8]) -> Option<usize> {
    let (line, at) = line(beginning)?;
    message(line).map(|(.., total)| at + total + 2)
}

/// The first operation of `bytes` and its length; `None` if it is not whole.
///
/// # Errors
/// Bytes that are not NATS, or a message of more than `max_payload` bytes.
#[inline]
pub(crate) fn decode(bytes: &[u8], max_payload: usize) -> Result<Option<(Op<'_>, usize)>, String> {
    let Some((line, at)) = line(bytes) else {
        return if bytes.len() < LINE_MAX {
            Ok(None)
        } else {
            Err(format!("a line of more than {LINE_MAX} bytes"))
        };
    };
    if let Some((subject, header, total)) = message(line) {
        if total > max_payload {
            return Err(format!(
                "a message of {total} bytes, where this trial takes up to {max_payload}: something else publishes to the same topics?"
            ));
        }
        let end = at + total;
        return match bytes.get(end..end + 2) {
            None => Ok(None),
            Some(b"\r\n") => {
                let (header, payload) = bytes[at..end].split_at(header);
                let message = Op::Message {
                    subject,
                    header,
                    payload,
                };
                Ok(Some((message, end + 2)))
            }
            Some(_) => Err("a message that does not end where it said".to_owned()),
        };
    }
    let op = match line {
        b"PING" => Op::Ping,
        b"PONG" => Op::Pong,
        b"+OK" => Op::Ok,
        _ => match (line.strip_prefix(b"INFO "), line.strip_prefix(b"-ERR")) {
            (Some(json), _) => Op::Info(json),
            (None, Some(words)) => Op::Error(words.trim_ascii()),
            (None, None) => return Err(format!("the line {:?}", excerpt(line))),
        },
    };
    Ok(Some((op, at)))
}

/// The beginning of what a server sent, for error texts.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned()
}

/// Appends a number in digits.
#[inline]
pub(crate) fn number(n: u32, out: &mut Vec<u8>) {
    for place in (0..=n.checked_ilog10().unwrap_or(0)).rev() {
        out.push(b'0' + (n / 10u32.pow(place) % 10) as u8);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn whole(bytes: &[u8]) -> (Op<'_>, usize) {
        decode(bytes, 100).unwrap().unwrap()
    }

    #[test]
    fn operations_are_read_as_the_protocol_shows_them() {
        let message = |subject, payload| Op::Message {
            subject,
            header: b"",
            payload,
        };
        assert_eq!(
            whole(b"MSG FOO.BAR 9 11\r\nHello World\r\n+OK").0,
            message(b"FOO.BAR", b"Hello World")
        );
        assert_eq!(
            whole(b"MSG FOO 9 GREETING.34 0\r\n\r\n"),
            (message(b"FOO", b""), 27)
        );
        let header = b"HMSG FOO 9 12 14\r\nNATS/1.0\r\n\r\nhi\r\n";
        let with_header = Op::Message {
            subject: b"FOO",
            header: b"NATS/1.0\r\n\r\n",
            payload: b"hi",
        };
        assert_eq!(whole(header), (with_header, header.len()));
        assert_eq!(whole(b"PING\r\n"), (Op::Ping, 6));
        assert_eq!(whole(b"PONG\nPONG\n"), (Op::Pong, 5));
        assert_eq!(whole(b"+OK\r\n").0, Op::Ok);
        assert_eq!(whole(b"INFO {}\r\n").0, Op::Info(b"{}"));
        assert_eq!(
            whole(b"-ERR 'Stale Connection'\r\n").0,
            Op::Error(b"'Stale Connection'")
        );
    }

    #[test]
    fn what_is_not_whole_waits_and_what_is_no_nats_fails() {
        let message = b"MSG a 1 3\r\nabc\r\n";
        for cut in 0..message.len() {
            assert_eq!(decode(&message[..cut], 3), Ok(None), "{cut}");
            let known = message[..cut].contains(&b'\n').then_some(message.len());
            assert_eq!(message_len(&message[..cut]), known);
        }
        for bad in [
            "HTTP/1.1 400 Bad Request\r\n",
            "MSG a 3\r\nabc\r\n",
            "MSG a 1 x\r\n",
            "MSG a 1 4\r\n",
            "MSG a 1 1000000000000\r\n",
            "HMSG a 1 4 3\r\nabc\r\n",
            "MSG a 1 3\r\nabcd\r\n",
        ] {
            assert!(decode(bad.as_bytes(), 3).is_err(), "{bad}");
        }
        assert!(decode(&vec![b'x'; LINE_MAX], 3).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(prop::sample::select(b"MSGH INFOP+-ER0123\r\n".to_vec()), 0..80)) {
            if let Ok(Some((_, len))) = decode(&bytes, 20) {
                prop_assert!(len > 0 && len <= bytes.len());
            }
            let _ = message_len(&bytes);
        }

        #[test]
        fn numbers_come_back(n in 0u32..1_000_000_000) {
            let mut out = Vec::new();
            number(n, &mut out);
            prop_assert_eq!(digits(&out), Some(n as usize));
            prop_assert_eq!(out, n.to_string().into_bytes());
        }
    }
}
