//! Bytes as hexadecimal digits.

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// 32 bytes from 64 hexadecimal digits.
pub(crate) fn unhex(digits: &str) -> Option<[u8; 32]> {
    let digits = digits.as_bytes();
    let mut bytes = [0; 32];
    if digits.len() != 64 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_bytes() {
        let bytes: [u8; 32] = std::array::from_fn(|n| (n * 9) as u8);
        assert_eq!(unhex(&hex(&bytes)), Some(bytes));
        assert_eq!(unhex(&hex(&bytes).to_uppercase()), Some(bytes));
        for wrong in [
            "",
            "00",
            &"0".repeat(63),
            &"0".repeat(65),
            &"+1".repeat(32),
            &"g".repeat(64),
        ] {
            assert_eq!(unhex(wrong), None, "{wrong}");
        }
    }
}
