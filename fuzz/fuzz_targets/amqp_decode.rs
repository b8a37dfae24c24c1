//! Bytes from an AMQP server: frames, methods, headers and whole deliveries.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pubgauge_driver_amqp::codec::{
    ContentHeader, FrameKind, Method, PublishTemplate, decode_delivery, decode_frame,
};

fuzz_target!(|data: &[u8]| {
    // As much as the driver allows for a frame.
    const FRAME_MAX: usize = 128 << 10;
    let mut rest = data;
    while let Ok(Some((frame, len))) = decode_frame(rest, FRAME_MAX) {
        if let Some((delivered, whole)) = decode_delivery(rest, FRAME_MAX) {
            assert!(whole <= rest.len() && delivered.body.len() < whole);
        }
        match frame.kind {
            FrameKind::Method => {
                if let Ok(method) = Method::decode(frame.payload) {
                    // What was understood is written the same, tables as they are.
                    let mut wire = Vec::new();
                    method
                        .encode(frame.channel, &mut wire)
                        .expect("it was on the wire");
                    assert_eq!(wire, rest[..len]);
                }
            }
            FrameKind::Header => {
                if let Ok(header) = ContentHeader::decode(frame.payload) {
                    let _ = header
                        .properties
                        .message_id
                        .and_then(PublishTemplate::read_id);
                    if let Some(headers) = header.properties.headers {
                        let _ = headers.iter().count();
                    }
                }
            }
            FrameKind::Body | FrameKind::Heartbeat => {}
        }
        rest = &rest[len..];
    }
});
