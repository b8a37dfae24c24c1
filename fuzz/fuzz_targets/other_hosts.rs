//! Any bytes as what a companion says first, as a packet of its echo, and as a file of hosts: understood or refused, never a
//! panic; names that are understood steer no terminal.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pubgauge_hosts::{EchoKey, EchoPacket, Hello, read_hosts};

fuzz_target!(|data: &[u8]| {
    if let Ok(Some(hello)) = Hello::read(&mut &data[..])
        && hello.check().is_ok()
    {
        let names = [&hello.machine.host, &hello.interface];
        assert!(
            names
                .iter()
                .all(|name| name.chars().all(|c| (' '..='~').contains(&c)))
        );
    }
    assert_eq!(
        EchoPacket::decode(data, &EchoKey::from_bytes([7; 32])),
        None
    );
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(hosts) = read_hosts(text, None)
    {
        assert!(hosts.iter().all(|host| host.worker(&[]).len() >= 3));
    }
});
