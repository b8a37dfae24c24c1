//! Messages of bounded length.

/// Characters of a message that are kept where it is longer than both: of its beginning and of its end.
const KEPT: [usize; 2] = [1400, 400];

/// A message of at most about 1,900 characters: of a longer one the beginning and the end, and between them how
/// much is missing. Messages may quote topics of 65,535 bytes and long reasons of servers.
pub fn shortened(text: impl Into<String>) -> String {
    let text = text.into();
    let count = if text.len() > KEPT[0] + KEPT[1] {
        text.chars().count()
    } else {
        return text;
    };
    if count <= KEPT[0] + KEPT[1] + 100 {
        return text;
    }
    let byte_of = |character: usize| {
        let mut starts = text.char_indices().map(|(byte, _)| byte);
        starts.nth(character).unwrap_or(text.len())
    };
    let (head, tail) = (byte_of(KEPT[0]), byte_of(count - KEPT[1]));
    format!(
        "{} [... {} characters ...] {}",
        &text[..head],
        count - KEPT[0] - KEPT[1],
        &text[tail..]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_keep_their_beginning_and_their_end() {
        for short in ["", "a topic", &"µ".repeat(1900)] {
            assert_eq!(shortened(short), short);
        }
        let long = format!("the topic {} is not one", "é/".repeat(30_000));
        let cut = shortened(long.as_str());
        assert!(cut.starts_with("the topic é/é/") && cut.ends_with("é/ is not one"));
        assert!(cut.contains(" [... 58221 characters ...] "), "{cut}");
        assert!(cut.chars().count() < 1900);
        assert_eq!(shortened(cut.clone()), cut, "once is enough");
    }
}
