//! Any bytes as the hello of a worker that nobody knows yet, and as a file of credentials: understood or
//! refused, never a panic; what was understood is written as what is understood the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pubgauge_hosts::Credentials;
use pubgauge_hosts::hello::{Answer, Hello};

fuzz_target!(|data: &[u8]| {
    if let Ok(hello) = Hello::decode(data) {
        let again = serde_json::to_vec(&hello).expect("plain data");
        assert_eq!(Hello::decode(&again), Ok(hello));
    }
    if let Ok(Answer::Welcome(welcome)) = serde_json::from_slice(data) {
        let _ = welcome.clock.and_then(|clock| clock.key());
    }
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(credentials) = Credentials::parse(text)
    {
        assert_eq!(Credentials::parse(&credentials.text()), Ok(credentials));
    }
});
