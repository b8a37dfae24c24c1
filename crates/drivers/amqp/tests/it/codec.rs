//! Frames are decoded as they were encoded, whatever they hold; bytes that are not AMQP never panic.

use proptest::prelude::*;
use pubgauge_driver_amqp::codec::method::*;
use pubgauge_driver_amqp::codec::{
    ContentHeader, DecodeError, FrameKind, Method, Properties, PublishTemplate, Table, TableBuf,
    Value, decode_delivery, decode_frame, end_frame,
};

fn round_trip(method: Method<'_>) {
    let mut wire = Vec::new();
    method.encode(3, &mut wire).unwrap();
    let (frame, len) = decode_frame(&wire, usize::MAX).unwrap().unwrap();
    assert_eq!((frame.kind, frame.channel), (FrameKind::Method, 3));
    assert_eq!(len, wire.len());
    assert_eq!(Method::decode(frame.payload), Ok(method));
    for cut in 4..frame.payload.len() {
        assert_eq!(
            Method::decode(&frame.payload[..cut]),
            Err(DecodeError::Truncated(method.name()))
        );
    }
    let mut longer = frame.payload.to_vec();
    longer.push(0);
    assert_eq!(
        Method::decode(&longer),
        Err(DecodeError::Trailing(method.name()))
    );
}

/// Every method there is, with these field values.
fn every_method<'a>(short: &'a [u8], long: &'a [u8], n: u64, table: Table<'a>) -> Vec<Method<'a>> {
    let (long, bits, half, word) = (Long(long), n as u8, n as u16, n as u32);
    macro_rules! all {
        ($($name:ident { $($field:ident: $value:expr),* })*) => {
            vec![$(Method::$name($name { $($field: $value,)* ..Default::default() }),)*]
        };
    }
    all! {
        ConnectionStart { version_major: bits, version_minor: bits, server_properties: table, mechanisms: long, locales: long }
        ConnectionStartOk { client_properties: table, mechanism: short, response: long, locale: short }
        ConnectionSecure { challenge: long }
        ConnectionTune { channel_max: half, frame_max: word, heartbeat: half }
        ConnectionTuneOk { channel_max: half, frame_max: word, heartbeat: half }
        ConnectionOpen { virtual_host: short, reserved_1: short, reserved_2: bits }
        ConnectionOpenOk { reserved_1: short }
        ConnectionClose { reply_code: half, reply_text: short, class_id: half, method_id: half }
        ConnectionCloseOk {}
        ConnectionBlocked { reason: short }
        ConnectionUnblocked {}
        ChannelOpen { reserved_1: short }
        ChannelOpenOk { reserved_1: long }
        ChannelFlow { active: bits }
        ChannelFlowOk { active: bits }
        ChannelClose { reply_code: half, reply_text: short, class_id: half, method_id: half }
        ChannelCloseOk {}
        ExchangeDeclare { exchange: short, kind: short, bits: bits, arguments: table }
        ExchangeDeclareOk {}
        QueueDeclare { queue: short, bits: bits, arguments: table }
        QueueDeclareOk { queue: short, message_count: word, consumer_count: word }
        QueueBind { queue: short, exchange: short, routing_key: short, no_wait: bits, arguments: table }
        QueueBindOk {}
        QueueDelete { queue: short, bits: bits }
        QueueDeleteOk { message_count: word }
        BasicQos { prefetch_size: word, prefetch_count: half, global: bits }
        BasicQosOk {}
        BasicConsume { queue: short, consumer_tag: short, bits: bits, arguments: table }
        BasicConsumeOk { consumer_tag: short }
        BasicCancel { consumer_tag: short, no_wait: bits }
        BasicCancelOk { consumer_tag: short }
        BasicPublish { exchange: short, routing_key: short, bits: bits }
        BasicReturn { reply_code: half, reply_text: short, exchange: short, routing_key: short }
        BasicDeliver { consumer_tag: short, delivery_tag: n, redelivered: bits, exchange: short, routing_key: short }
        BasicAck { delivery_tag: n, bits: bits }
        BasicNack { delivery_tag: n, bits: bits }
        ConfirmSelect { no_wait: bits }
        ConfirmSelectOk {}
        TxSelect {}
        TxSelectOk {}
        TxCommit {}
        TxCommitOk {}
        TxRollback {}
        TxRollbackOk {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn methods(
        short in prop::collection::vec(any::<u8>(), 0..256),
        long in prop::collection::vec(any::<u8>(), 0..400),
        n: u64,
        name in "[a-z]{0,20}",
    ) {
        let mut table = TableBuf::default();
        table.push(&name, Value::Long(&long)).unwrap().push("n", Value::Int(n as i64)).unwrap();
        let all = every_method(&short, &long, n, table.as_table());
        prop_assert_eq!(all.len(), 44);
        for method in all {
            round_trip(method);
        }
    }

    #[test]
    fn headers(
        body_size: u64,
        mode in prop::option::of(any::<u8>()),
        priority in prop::option::of(any::<u8>()),
        texts in prop::array::uniform2(prop::option::of(prop::collection::vec(any::<u8>(), 0..256))),
        value in prop::option::of(any::<i64>()),
    ) {
        let mut table = TableBuf::default();
        if let Some(value) = value {
            table.push("value", Value::Int(value)).unwrap();
        }
        let header = ContentHeader {
            body_size,
            properties: Properties {
                headers: value.map(|_| table.as_table()),
                delivery_mode: mode,
                priority,
                expiration: texts[0].as_deref(),
                message_id: texts[1].as_deref(),
            },
        };
        let mut wire = Vec::new();
        header.encode(&mut wire).unwrap();
        prop_assert_eq!(ContentHeader::decode(&wire), Ok(header));
        for cut in 0..wire.len() {
            prop_assert!(ContentHeader::decode(&wire[..cut]).is_err());
        }
    }

    /// A published message, read frame by frame, is the message; whatever the length of frames.
    #[test]
    fn published_messages(
        key in "[a-z.]{0,60}",
        head in prop::collection::vec(any::<u8>(), 0..40),
        body in prop::collection::vec(any::<u8>(), 0..5000),
        frame_max in 16usize..3000,
        filled in prop::option::of((1usize..3, 0usize..3)),
        mandatory: bool,
        id: u64,
    ) {
        // Frames that one or two fill, or miss by a byte.
        let len = head.len() + body.len();
        let frame_max = filled.map_or(frame_max, |(n, more)| (len / n + 7 + more).max(16));
        let properties = Properties { delivery_mode: Some(2), ..Properties::default() };
        let template = PublishTemplate::new(9, "amq.topic", &key, mandatory, properties).unwrap();
        let mut wire = Vec::new();
        template.append(&mut wire, frame_max, id, &head, &body);
        let whole = [head, body].concat();

        let (method, used) = decode_frame(&wire, usize::MAX).unwrap().unwrap();
        let publish = Method::decode(method.payload).unwrap();
        let Method::BasicPublish(publish) = publish else { panic!("{publish:?}") };
        prop_assert_eq!(publish.routing_key, key.as_bytes());
        prop_assert_eq!(publish.bits, u8::from(mandatory));
        let mut rest = &wire[used..];
        let (header, used) = decode_frame(rest, usize::MAX).unwrap().unwrap();
        rest = &rest[used..];
        let header = ContentHeader::decode(header.payload).unwrap();
        prop_assert_eq!(header.body_size, whole.len() as u64);
        prop_assert_eq!(header.properties.delivery_mode, Some(2));
        prop_assert_eq!(header.properties.message_id.and_then(PublishTemplate::read_id), mandatory.then_some(id));
        let mut got = Vec::new();
        while let Some((frame, used)) = decode_frame(rest, frame_max).unwrap() {
            prop_assert_eq!((frame.kind, frame.channel), (FrameKind::Body, 9));
            prop_assert!(!frame.payload.is_empty());
            got.extend_from_slice(frame.payload);
            rest = &rest[used..];
        }
        prop_assert!(rest.is_empty());
        prop_assert_eq!(got, whole);
    }

    /// The shortcut sees what the long way sees, and nothing before it is whole.
    #[test]
    fn deliveries(
        key in "[a-z.]{0,60}",
        tag: u64,
        redelivered: bool,
        body in prop::collection::vec(any::<u8>(), 1..300),
    ) {
        let mut wire = Vec::new();
        let deliver = BasicDeliver {
            consumer_tag: b"c",
            delivery_tag: tag,
            redelivered: u8::from(redelivered),
            exchange: b"amq.topic",
            routing_key: key.as_bytes(),
            ..BasicDeliver::default()
        };
        Method::BasicDeliver(deliver).encode(2, &mut wire).unwrap();
        let method_len = wire.len();
        // The rest of a published message is that of a delivered one.
        let template = PublishTemplate::new(2, "", "", false, Properties::default()).unwrap();
        let mut published = Vec::new();
        template.append(&mut published, 4096, 0, &[], &body);
        let (_, skip) = decode_frame(&published, 4096).unwrap().unwrap();
        wire.extend_from_slice(&published[skip..]);

        for cut in 0..wire.len() {
            prop_assert_eq!(decode_delivery(&wire[..cut], 4096), None);
        }
        wire.extend_from_slice(b"more");
        let (delivered, used) = decode_delivery(&wire, 4096).unwrap();
        prop_assert_eq!(used, wire.len() - 4);
        prop_assert_eq!((delivered.channel, delivered.delivery_tag), (2, tag));
        prop_assert_eq!(delivered.redelivered, redelivered);
        prop_assert_eq!(delivered.routing_key, key.as_bytes());
        prop_assert_eq!(delivered.body, &body[..]);
        // A heartbeat in between is legal, and for the long way.
        wire.splice(method_len..method_len, pubgauge_driver_amqp::codec::HEARTBEAT);
        prop_assert_eq!(decode_delivery(&wire, 4096), None);
    }

    #[test]
    fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..400), frame_max in 0usize..500) {
        let _ = Method::decode(&bytes);
        let _ = ContentHeader::decode(&bytes);
        let _ = decode_delivery(&bytes, frame_max);
    }

    /// A known method with any fields.
    #[test]
    fn no_method_panics(which in 0usize..44, fields in prop::collection::vec(any::<u8>(), 0..100)) {
        let method = every_method(b"", b"", 0, Table::default())[which];
        let mut wire = Vec::new();
        method.encode(0, &mut wire).unwrap();
        wire.truncate(11); // Frame header, class, method.
        wire.extend_from_slice(&fields);
        end_frame(0, &mut wire);
        let (frame, _) = decode_frame(&wire, 4096).unwrap().unwrap();
        if let Ok(decoded) = Method::decode(frame.payload) {
            prop_assert_eq!(decoded.name(), method.name());
            let mut again = Vec::new();
            decoded.encode(0, &mut again).unwrap();
            prop_assert_eq!(&again, &wire);
        }
    }
}

#[test]
fn the_bytes_are_those_of_the_specification() {
    let mut wire = Vec::new();
    let open = Method::ConnectionOpen(ConnectionOpen {
        virtual_host: b"/",
        ..ConnectionOpen::default()
    });
    open.encode(0, &mut wire).unwrap();
    assert_eq!(wire, b"\x01\0\0\0\0\0\x08\0\x0a\0\x28\x01/\0\0\xce");
    wire.clear();
    let ack = Method::BasicAck(BasicAck {
        delivery_tag: 258,
        bits: MULTIPLE,
        ..BasicAck::default()
    });
    ack.encode(1, &mut wire).unwrap();
    assert_eq!(
        wire,
        b"\x01\0\x01\0\0\0\x0d\0\x3c\0\x50\0\0\0\0\0\0\x01\x02\x01\xce"
    );
}

#[test]
fn a_method_that_cannot_be_encoded_appends_nothing() {
    let mut wire = vec![7];
    let long = [b'x'; 256];
    let declare = Method::QueueDeclare(QueueDeclare {
        queue: &long,
        ..QueueDeclare::default()
    });
    assert!(declare.encode(1, &mut wire).is_err());
    assert_eq!(wire, [7]);
}
