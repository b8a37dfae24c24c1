//! Cuts the bytes of an XML stream into its top-level parts (RFC 6120 §4): the stream header,
//! stanzas, the end tag. It reads just enough of XML for that (tags, quotes, CDATA sections); the
//! XML parser reads what is inside a stanza ([`crate::stanza`]).
//!
//! A part may come in any number of pieces: the framer remembers how far it has looked, so that
//! no byte is looked at twice. What RFC 6120 §11.1 forbids is refused where it begins: comments,
//! processing instructions, document type declarations (and with them, entities).

use memchr::{memchr, memchr3, memmem};

/// Deepest nesting of elements that is accepted.
pub const MAX_DEPTH: u32 = 32;

/// A top-level part of a stream: how many bytes it takes from the start of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// White space between stanzas: a keep-alive.
    Blank(usize),
    /// The start tag of the stream, with the XML declaration before it.
    Header(usize),
    /// A whole element of the stream.
    Stanza(usize),
    /// The end tag of the stream.
    Close(usize),
}

/// Why bytes are not an XMPP stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Text where only elements may stand.
    #[error("text between stanzas")]
    Text,
    /// RFC 6120 §11.1.
    #[error(
        "a comment, a document type declaration or a processing instruction, which XMPP forbids"
    )]
    Restricted,
    /// More than [`MAX_DEPTH`] levels.
    #[error("elements more than 32 deep")]
    Deep,
    /// An end tag before the first start tag.
    #[error("an end tag without its start tag")]
    Unbalanced,
}

/// The construct that the framer is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Inside {
    /// Text, or nothing yet.
    #[default]
    Text,
    /// A tag, after its `<`; `end` where it began with `</`.
    Tag { end: bool },
    /// An attribute's value within a start tag.
    Quote(u8),
    /// A CDATA section.
    Cdata,
    /// The XML declaration.
    Declaration,
}

/// The position in a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Framer {
    /// Bytes looked at, from the start of the part that is not complete.
    at: usize,
    /// Open elements, the stream itself included.
    depth: u32,
    inside: Inside,
}

impl Framer {
    /// The first part of `buf`, if it is whole. The caller then takes it off the buffer, and
    /// otherwise calls again with more bytes behind the same ones.
    ///
    /// # Errors
    /// When this is no XMPP stream. The framer must not be used after that.
    pub fn next(&mut self, buf: &[u8]) -> Result<Option<Unit>, FrameError> {
        if self.at == 0 {
            let blank = buf.iter().take_while(|b| is_space(**b)).count();
            if blank > 0 {
                return Ok(Some(Unit::Blank(blank)));
            }
        }
        while self.at < buf.len() {
            let rest = &buf[self.at..];
            match self.inside {
                Inside::Text => {
                    let n = memchr(b'<', rest).unwrap_or(rest.len());
                    // Only white space after the XML declaration is left here.
                    if self.depth <= 1 && !rest[..n].iter().all(|b| is_space(*b)) {
                        return Err(FrameError::Text);
                    }
                    self.at += n;
                    if n == rest.len() {
                        break;
                    }
                    if !self.open_markup(&buf[self.at..])? {
                        break;
                    }
                }
                Inside::Tag { end } => {
                    let Some(n) = memchr3(b'>', b'"', b'\'', rest) else {
                        self.at = buf.len();
                        break;
                    };
                    self.at += n + 1;
                    if rest[n] != b'>' {
                        self.inside = Inside::Quote(rest[n]);
                        continue;
                    }
                    self.inside = Inside::Text;
                    // The byte before is there: `<` at least.
                    let empty = !end && buf[self.at - 2] == b'/';
                    if let Some(unit) = self.close_tag(end, empty)? {
                        self.at = 0;
                        return Ok(Some(unit));
                    }
                }
                Inside::Quote(quote) => match memchr(quote, rest) {
                    Some(n) => {
                        self.at += n + 1;
                        self.inside = Inside::Tag { end: false };
                    }
                    None => self.at = buf.len(),
                },
                Inside::Cdata => match memmem::find(rest, b"]]>") {
                    Some(n) => {
                        self.at += n + 3;
                        self.inside = Inside::Text;
                    }
                    None => {
                        // The end may have begun.
                        self.at += rest.len().saturating_sub(2);
                        break;
                    }
                },
                Inside::Declaration => match memmem::find(rest, b"?>") {
                    Some(n) => {
                        self.at += n + 2;
                        self.inside = Inside::Text;
                    }
                    None => {
                        self.at += rest.len().saturating_sub(1);
                        break;
                    }
                },
            }
        }
        Ok(None)
    }

    /// Looks at what begins with `<`. False if that takes more bytes.
    fn open_markup(&mut self, rest: &[u8]) -> Result<bool, FrameError> {
        const CDATA: &[u8] = b"<![CDATA[";
        const DECLARATION: &[u8] = b"<?xml";
        let begins = |what: &[u8]| rest.starts_with(what);
        let may_begin = |what: &[u8]| what.starts_with(rest);
        match rest.get(1) {
            None => return Ok(false),
            Some(b'!') if begins(CDATA) && self.depth > 1 => {
                self.at += CDATA.len();
                self.inside = Inside::Cdata;
            }
            Some(b'!') if may_begin(CDATA) && self.depth > 1 => return Ok(false),
            Some(b'?') if begins(DECLARATION) && self.depth == 0 && self.at == 0 => {
                self.at += DECLARATION.len();
                self.inside = Inside::Declaration;
            }
            Some(b'?') if may_begin(DECLARATION) && self.depth == 0 && self.at == 0 => {
                return Ok(false);
            }
            Some(b'!' | b'?') => return Err(FrameError::Restricted),
            Some(b'/') => {
                self.at += 2;
                self.inside = Inside::Tag { end: true };
            }
            Some(_) => {
                self.at += 1;
                self.inside = Inside::Tag { end: false };
            }
        }
        Ok(true)
    }

    /// Counts a tag that has ended at `at`.
    fn close_tag(&mut self, end: bool, empty: bool) -> Result<Option<Unit>, FrameError> {
        if end {
            self.depth = self.depth.checked_sub(1).ok_or(FrameError::Unbalanced)?;
        }
        if end || empty {
            return Ok(match self.depth {
                0 => Some(Unit::Close(self.at)),
                1 => Some(Unit::Stanza(self.at)),
                _ => None,
            });
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(FrameError::Deep);
        }
        Ok((self.depth == 1).then_some(Unit::Header(self.at)))
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// All parts of `stream`, given in pieces that end at `cuts`.
    fn parts(stream: &[u8], cuts: &[usize]) -> Result<Vec<(Unit, Vec<u8>)>, FrameError> {
        let mut framer = Framer::default();
        let mut buf = Vec::new();
        let mut parts = Vec::new();
        let mut from = 0;
        for to in cuts.iter().copied().chain([stream.len()]) {
            buf.extend_from_slice(&stream[from..to]);
            from = to;
            while let Some(unit) = framer.next(&buf)? {
                let (Unit::Blank(n) | Unit::Header(n) | Unit::Stanza(n) | Unit::Close(n)) = unit;
                parts.push((unit, buf.drain(..n).collect()));
            }
        }
        Ok(parts)
    }

    const STREAM: &[u8] = b"<?xml version='1.0'?> <stream:stream a='>' b=\"'\"><a/>\
        <b c='/>' d=\"</b>\"><d><![CDATA[</b>]] ]]]>text</d></b> <e f='x'/></stream:stream>";

    fn whole() -> Vec<Vec<u8>> {
        let parts = parts(STREAM, &[]).unwrap();
        parts.into_iter().map(|(_, bytes)| bytes).collect()
    }

    #[test]
    fn a_stream_is_cut_at_its_stanzas() {
        let units: Vec<_> = parts(STREAM, &[]).unwrap();
        let words: Vec<_> = units
            .iter()
            .map(|(unit, bytes)| (*unit, std::str::from_utf8(bytes).unwrap()))
            .collect();
        assert!(matches!(words[0].0, Unit::Header(_)));
        assert_eq!(words[1], (Unit::Stanza(4), "<a/>"));
        assert!(
            words[2].1.starts_with("<b") && words[2].1.ends_with("</b>"),
            "{words:?}"
        );
        assert_eq!(words[3], (Unit::Blank(1), " "));
        assert_eq!(words[4], (Unit::Stanza(10), "<e f='x'/>"));
        assert_eq!(words[5], (Unit::Close(16), "</stream:stream>"));
        assert_eq!(words.len(), 6);
    }

    #[test]
    fn cut_at_any_byte_it_is_the_same() {
        let whole = whole();
        for cut in 0..=STREAM.len() {
            let parts = parts(STREAM, &[cut]).unwrap();
            let bytes: Vec<_> = parts.into_iter().map(|(_, bytes)| bytes).collect();
            assert_eq!(bytes, whole, "cut at {cut}");
        }
        let every: Vec<usize> = (0..STREAM.len()).collect();
        let parts = parts(STREAM, &every).unwrap();
        let bytes: Vec<_> = parts.into_iter().map(|(_, bytes)| bytes).collect();
        assert_eq!(bytes, whole);
    }

    #[test]
    fn what_xmpp_forbids_is_refused() {
        let streams: [(&[u8], FrameError); 8] = [
            (b"<!DOCTYPE x [<!ENTITY a 'b'>]><s>", FrameError::Restricted),
            (b"<s><!-- c --></s>", FrameError::Restricted),
            (b"<s><a><!-- c --></a></s>", FrameError::Restricted),
            (b"<s><?php x?></s>", FrameError::Restricted),
            (b"<s>text<a/></s>", FrameError::Text),
            (b"HTTP/1.1 400 Bad Request", FrameError::Text),
            (b"</s>", FrameError::Unbalanced),
            (b"<s><![CDATA[x]]></s>", FrameError::Restricted),
        ];
        for (stream, error) in streams {
            let shown = String::from_utf8_lossy(stream);
            assert_eq!(parts(stream, &[]), Err(error), "{shown}");
            let every: Vec<usize> = (0..stream.len()).collect();
            assert_eq!(parts(stream, &every), Err(error), "{shown}, byte by byte");
        }
        let nested = |levels: u32| "<a>".repeat(levels as usize);
        assert!(parts(nested(MAX_DEPTH).as_bytes(), &[]).is_ok());
        let deep = nested(MAX_DEPTH + 1);
        assert_eq!(parts(deep.as_bytes(), &[]), Err(FrameError::Deep));
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_pieces_are_the_same_parts(
            bytes in proptest::collection::vec(
                prop_oneof![
                    Just(b"<a>".to_vec()), Just(b"</a>".to_vec()), Just(b"<b/>".to_vec()),
                    Just(b"<![CDATA[".to_vec()), Just(b"]]>".to_vec()), Just(b" ".to_vec()),
                    Just(b"<c d='".to_vec()), Just(b"'>".to_vec()), Just(b"\"".to_vec()),
                    proptest::collection::vec(any::<u8>(), 0..4),
                ],
                0..30,
            ).prop_map(|parts| parts.concat()),
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.sort_unstable();
            let flat = |parts: Result<Vec<(Unit, Vec<u8>)>, FrameError>| parts.map(|parts| {
                // Blanks may be cut anywhere, and mean nothing.
                parts.into_iter().filter(|(unit, _)| !matches!(unit, Unit::Blank(_))).collect::<Vec<_>>()
            });
            prop_assert_eq!(flat(parts(&bytes, &cuts)), flat(parts(&bytes, &[])));
        }
    }
}
