mod topics;

use super::*;
use proptest::prelude::*;

/// Columns by name, path and type, of payloads of a form.
fn columns(form: Form, each: &[(&str, &str, ColumnType)]) -> Columns {
    let is_senml = matches!(form, Form::SenmlJson | Form::SenmlCbor);
    let column = |&(name, path, of): &(&str, &str, ColumnType)| Column {
        name: name.into(),
        source: if is_senml {
            Source::Record(path.into())
        } else {
            Source::pointer(path).unwrap()
        },
        of,
        unit: TimeUnit::S,
        topics: None,
    };
    Columns {
        form: Some(form),
        keep_raw: true,
        columns: each.iter().map(column).collect(),
    }
}

/// 2026-11-26 07:00 UTC.
const SEVEN_NS: i64 = 1_795_676_400_000_000_000;

fn decode(columns: &Columns, payload: &[u8]) -> Decoded {
    columns.decode("a/b", payload, SEVEN_NS).unwrap()
}

/// One value, in a column of this type.
fn value(json: &str, of: ColumnType) -> Result<Option<Cell>, Unfit> {
    let decoded = decode(
        &columns(Form::Json, &[("a", "/a", of)]),
        format!("{{\"a\": {json}}}").as_bytes(),
    );
    match decoded.unfit {
        Some(unfit) => Err(unfit),
        None => Ok(decoded.cells[0].clone()),
    }
}

fn cbor(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    ciborium::into_writer(value, &mut bytes).unwrap();
    bytes
}

#[test]
fn values_stand_in_the_columns_that_point_at_them() {
    let columns = columns(
        Form::Json,
        &[
            ("watts", "/meter/watts", ColumnType::Double),
            ("second", "/list/1", ColumnType::Int64),
            ("slash", "/a~1b~0c", ColumnType::String),
            ("absent", "/meter/volts", ColumnType::Double),
            ("on", "/on", ColumnType::Boolean),
        ],
    );
    let payload =
        br#"{"meter": {"watts": 1.5}, "list": [1, 2], "a/b~c": "x", "on": true, "other": null}"#;
    let expected = vec![
        Some(Cell::Double(1.5)),
        Some(Cell::Int64(2)),
        Some(Cell::String("x".into())),
        None,
        Some(Cell::Boolean(true)),
    ];
    assert_eq!(
        decode(&columns, payload),
        Decoded {
            cells: expected,
            unfit: Some(Unfit::Missing),
            is_asked: true,
        }
    );
    assert_eq!(Source::pointer("watts"), None);
    assert_eq!(Source::pointer("/a~2"), None);
}

#[test]
fn a_column_takes_what_it_can_hold_as_it_is_and_nothing_else() {
    use ColumnType::*;
    let unfit = Err(Unfit::Value);
    for (json, of, expected) in [
        ("1", Int64, Ok(Some(Cell::Int64(1)))),
        ("2.0", Int64, Ok(Some(Cell::Int64(2)))),
        ("2.5", Int64, unfit.clone()),
        (
            "9223372036854775807",
            Int64,
            Ok(Some(Cell::Int64(i64::MAX))),
        ),
        ("9223372036854775808", Int64, unfit.clone()),
        ("1e300", Int64, unfit.clone()),
        ("\"1\"", Int64, unfit.clone()),
        ("null", Int64, Ok(None)),
        ("1", Double, Ok(Some(Cell::Double(1.0)))),
        ("9007199254740993", Double, unfit.clone()),
        ("true", Double, unfit.clone()),
        ("0", Boolean, unfit.clone()),
        ("{}", String, unfit.clone()),
        ("[]", String, unfit.clone()),
        (
            "\"2026-11-26T07:00:00Z\"",
            Timestamp,
            Ok(Some(Cell::Timestamp(SEVEN_NS / 1000))),
        ),
        (
            "\"2026-11-26T08:00:00.000001+01:00\"",
            Timestamp,
            Ok(Some(Cell::Timestamp(SEVEN_NS / 1000 + 1))),
        ),
        (
            "1795676400",
            Timestamp,
            Ok(Some(Cell::Timestamp(SEVEN_NS / 1000))),
        ),
        (
            "1795676400.25",
            Timestamp,
            Ok(Some(Cell::Timestamp(SEVEN_NS / 1000 + 250_000))),
        ),
        ("\"yesterday\"", Timestamp, unfit.clone()),
        ("1e18", Timestamp, unfit.clone()),
        ("9223372036854775807", Timestamp, unfit.clone()),
    ] {
        assert_eq!(value(json, of), expected, "{json} as {of:?}");
    }
}

#[test]
fn numbers_that_are_times_count_in_their_unit() {
    let mut columns = columns(Form::Json, &[("at", "/at", ColumnType::Timestamp)]);
    for (unit, number) in [
        (TimeUnit::S, "1795676400"),
        (TimeUnit::Ms, "1795676400000"),
        (TimeUnit::Us, "1795676400000000"),
        (TimeUnit::Ns, "1795676400000000000"),
    ] {
        columns.columns[0].unit = unit;
        let decoded = decode(&columns, format!("{{\"at\": {number}}}").as_bytes());
        assert_eq!(
            decoded.cells,
            [Some(Cell::Timestamp(SEVEN_NS / 1000))],
            "{unit:?}"
        );
    }
}

#[test]
fn a_value_that_does_not_fit_leaves_the_others_and_is_told() {
    let columns = columns(
        Form::Json,
        &[
            ("a", "/a", ColumnType::Int64),
            ("b", "/b", ColumnType::Int64),
        ],
    );
    let decoded = decode(&columns, br#"{"a": "x", "b": 2}"#);
    assert_eq!(
        decoded,
        Decoded {
            cells: vec![None, Some(Cell::Int64(2))],
            unfit: Some(Unfit::Value),
            is_asked: true,
        }
    );
    // Which of two is meant nobody can tell.
    let decoded = decode(&columns, br#"{"a": 1, "a": 3, "b": 2}"#);
    assert_eq!(
        decoded,
        Decoded {
            cells: vec![None, Some(Cell::Int64(2))],
            unfit: Some(Unfit::Value),
            is_asked: true,
        }
    );
}

#[test]
fn cbor_has_the_same_columns_and_its_own_kinds_of_time() {
    let columns = columns(
        Form::Cbor,
        &[
            ("watts", "/meter/watts", ColumnType::Double),
            ("at", "/at", ColumnType::Timestamp),
            ("text_at", "/text_at", ColumnType::Timestamp),
            ("count", "/count", ColumnType::Int64),
        ],
    );
    let text = |text: &str| Value::Text(text.into());
    let payload = cbor(&Value::Map(vec![
        (
            text("meter"),
            Value::Map(vec![
                (text("watts"), Value::Float(f64::INFINITY)),
                (Value::Integer(7.into()), Value::Null),
            ]),
        ),
        (
            text("at"),
            Value::Tag(1, Box::new(Value::Integer(1_795_676_400.into()))),
        ),
        (
            text("text_at"),
            Value::Tag(0, Box::new(text("2026-11-26T07:00:00Z"))),
        ),
        (text("count"), Value::Integer(u64::MAX.into())),
    ]));
    let seven = Some(Cell::Timestamp(SEVEN_NS / 1000));
    let cells = vec![
        Some(Cell::Double(f64::INFINITY)),
        seven.clone(),
        seven,
        None,
    ];
    assert_eq!(
        decode(&columns, &payload),
        Decoded {
            cells,
            unfit: Some(Unfit::Value),
            is_asked: true,
        }
    );
    let mut longer = payload.clone();
    longer.push(0);
    for wrong in [
        &longer[..],
        &payload[..payload.len() - 1],
        b"",
        b"{\"watts\": 1}",
    ] {
        assert_eq!(
            decode(&columns, wrong).unfit,
            Some(Unfit::Form),
            "{wrong:x?}"
        );
    }
}

/// The example of RFC 8428 §5.1.3, with a device's base name.
const PACK: &str = r#"[
    {"bn": "urn:dev:ow:10e2073a0108006:", "bt": 1795676400.0, "bu": "A", "bver": 5, "n": "voltage", "u": "V", "v": 120.1},
    {"n": "current", "t": -5, "v": 1.2},
    {"n": "door", "vb": true},
    {"n": "label", "vs": "north"},
    {"n": "blob", "vd": "aGk"}
]"#;

#[test]
fn records_of_senml_stand_in_columns_by_their_names() {
    use ColumnType::*;
    let columns = columns(
        Form::SenmlJson,
        &[
            ("voltage", "voltage", Double),
            ("current", "urn:dev:ow:10e2073a0108006:current", Double),
            ("current_at", "current", Timestamp),
            ("door", "door", Boolean),
            ("label", "label", String),
            ("absent", "absent", Double),
        ],
    );
    let cells = vec![
        Some(Cell::Double(120.1)),
        Some(Cell::Double(1.2)),
        Some(Cell::Timestamp(SEVEN_NS / 1000 - 5_000_000)),
        Some(Cell::Boolean(true)),
        Some(Cell::String("north".into())),
        None,
    ];
    let unfit = Some(Unfit::Missing);
    assert_eq!(
        decode(&columns, PACK.as_bytes()),
        Decoded {
            cells,
            unfit,
            is_asked: true
        }
    );
}

#[test]
fn senml_in_cbor_is_the_same_with_numbers_for_names() {
    use ColumnType::*;
    let columns = columns(
        Form::SenmlCbor,
        &[("current", "current", Double), ("at", "current", Timestamp)],
    );
    let field = |label: i64, value: Value| (Value::Integer(label.into()), value);
    let pack = Value::Array(vec![
        Value::Map(vec![
            field(-2, Value::Text("dev:".into())),
            field(-3, Value::Float(1_795_676_400.0)),
            field(0, Value::Text("voltage".into())),
            field(2, Value::Integer(120.into())),
        ]),
        Value::Map(vec![
            field(0, Value::Text("current".into())),
            field(6, Value::Integer((-5).into())),
            field(2, Value::Float(1.2)),
        ]),
    ]);
    let cells = vec![
        Some(Cell::Double(1.2)),
        Some(Cell::Timestamp(SEVEN_NS / 1000 - 5_000_000)),
    ];
    assert_eq!(
        decode(&columns, &cbor(&pack)),
        Decoded {
            cells,
            unfit: None,
            is_asked: true
        }
    );
}

#[test]
fn base_values_are_added_and_small_times_are_relative_to_the_arrival() {
    use ColumnType::*;
    let columns = columns(
        Form::SenmlJson,
        &[("t", "t", Int64), ("at", "t", Timestamp)],
    );
    let decoded = decode(
        &columns,
        br#"[{"bn": "d/", "bv": 20, "n": "t", "v": 1, "t": -2.5}]"#,
    );
    let at = Cell::Timestamp(SEVEN_NS / 1000 - 2_500_000);
    assert_eq!(decoded.cells, [Some(Cell::Int64(21)), Some(at)]);
    // A record without a time came when the message came.
    let decoded = decode(&columns, br#"[{"n": "t", "v": 1}]"#);
    assert_eq!(
        decoded.cells,
        [Some(Cell::Int64(1)), Some(Cell::Timestamp(SEVEN_NS / 1000))]
    );
}

#[test]
fn what_a_row_cannot_hold_of_a_pack_is_told() {
    let columns = columns(Form::SenmlJson, &[("t", "t", ColumnType::Double)]);
    for (pack, unfit) in [
        // A series.
        (
            r#"[{"n": "t", "v": 1}, {"n": "t", "t": 1, "v": 2}]"#,
            Unfit::Value,
        ),
        // Two devices.
        (
            r#"[{"bn": "a/", "n": "t", "v": 1}, {"bn": "b/", "n": "t", "v": 2}]"#,
            Unfit::Value,
        ),
        (r#"[{"n": "t", "vs": "warm"}]"#, Unfit::Value),
        (r#"[{"n": "t", "vd": "aGk"}]"#, Unfit::Value),
        // What must be understood, a version to come, and what is no SenML.
        (r#"[{"n": "t", "v": 1, "x_": 1}]"#, Unfit::Form),
        (r#"[{"bver": 11, "n": "t", "v": 1}]"#, Unfit::Form),
        (r#"[{"n": 1, "v": 1}]"#, Unfit::Form),
        (r#"[{"n": "t", "bt": "now", "v": 1}]"#, Unfit::Form),
        (r#"[{"n": "t", "n": "u", "v": 1}]"#, Unfit::Form),
        (r#"{"n": "t", "v": 1}"#, Unfit::Form),
        ("[1]", Unfit::Form),
    ] {
        let decoded = decode(&columns, pack.as_bytes());
        assert_eq!(
            (decoded.unfit, &decoded.cells[..]),
            (Some(unfit), &[None][..]),
            "{pack}"
        );
    }
}

#[test]
fn what_a_column_does_not_get_is_not_decoded_and_the_payload_stays() {
    let columns = Columns {
        keep_raw: false,
        ..columns(
            Form::Json,
            &[
                ("watts", "/watts", ColumnType::Double),
                ("serial", "/meter/serial", ColumnType::String),
            ],
        )
    };
    let kept = |payload: &str| columns.keeps(Some(&decode(&columns, payload.as_bytes())));
    for (payload, expected) in [
        (r#"{"watts": 1, "meter": {"serial": "a"}}"#, false),
        // The device says that there is none.
        (r#"{"watts": null, "meter": {"serial": "a"}}"#, false),
        // Renamed, moved, wrapped in an array, a bare value, nothing.
        (r#"{"power": 1, "meter": {"serial": "a"}}"#, true),
        (r#"{"watts": 1, "serial": "a"}"#, true),
        (r#"{"watts": 1, "meter": null}"#, true),
        (r#"[{"watts": 1, "meter": {"serial": "a"}}]"#, true),
        (r#"{"watts": [1], "meter": {"serial": "a"}}"#, true),
        ("17.5", true),
        ("null", true),
        ("{}", true),
        ("[]", true),
    ] {
        assert_eq!(kept(payload), expected, "{payload}");
    }
    let series = Columns {
        form: Some(Form::SenmlJson),
        columns: vec![Column {
            name: "t".into(),
            source: Source::Record("t".into()),
            of: ColumnType::Double,
            unit: TimeUnit::S,
            topics: None,
        }],
        ..columns
    };
    for (pack, expected) in [
        (r#"[{"n": "t", "v": 1}]"#, false),
        (r#"[{"n": "u", "v": 1}]"#, true),
        (r#"[{"n": "t"}]"#, true),
        ("[]", true),
    ] {
        let decoded = decode(&series, pack.as_bytes());
        assert_eq!(series.keeps(Some(&decoded)), expected, "{pack}");
    }
}

/// Hostile payloads: nesting, lengths and keys that claim more than the bytes have.
#[test]
fn hostile_payloads_are_of_no_form() {
    let all = [Form::Json, Form::Cbor, Form::SenmlJson, Form::SenmlCbor];
    let deep = |open: u8| vec![open; 100_000];
    let payloads = [
        deep(b'['),
        deep(b'{'),
        // Arrays of one element, tags, arrays and maps of no said length, all without an end.
        deep(0x81),
        deep(0xc1),
        deep(0x9f),
        deep(0xbf),
        // A text, bytes, an array and a map of 2^64 - 1.
        [&[0x7b][..], &[0xff; 8]].concat(),
        [&[0x5b][..], &[0xff; 8]].concat(),
        [&[0x9b][..], &[0xff; 8]].concat(),
        [&[0xbb][..], &[0xff; 8]].concat(),
        vec![0xff; 1000],
        // Longer than is decoded.
        format!("\"{}\"", "x".repeat(MAX_BYTES)).into_bytes(),
        b"1e999".to_vec(),
        b"\"\xff\"".to_vec(),
    ];
    for form in all {
        let columns = columns(form, &[("a", "/a", ColumnType::Int64)]);
        for payload in &payloads {
            let decoded = decode(&columns, payload);
            assert_eq!(
                decoded.unfit,
                Some(Unfit::Form),
                "{form:?}: {:x?}",
                &payload[..9.min(payload.len())]
            );
        }
    }
}

/// Trees that JSON and CBOR both have.
fn trees() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>()
            .prop_filter("JSON has them", |number| number.is_finite())
            .prop_map(Into::into),
        "[a-z]{0,3}".prop_map(Into::into),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::btree_map("[ab]", inner, 0..3)
                .prop_map(|map| map.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

proptest! {
    /// What a column has is what `serde_json` finds there.
    #[test]
    fn json_and_cbor_agree_with_a_pointer(tree in trees(), path in "(/[ab01]){0,3}") {
        let each: Vec<_> = [ColumnType::Int64, ColumnType::Double, ColumnType::String, ColumnType::Boolean]
            .into_iter()
            .map(|of| ("a", path.as_str(), of))
            .collect();
        let mut in_cbor = Vec::new();
        ciborium::into_writer(&tree, &mut in_cbor).unwrap();
        let json = decode(&columns(Form::Json, &each), tree.to_string().as_bytes());
        prop_assert_eq!(&json, &decode(&columns(Form::Cbor, &each), &in_cbor));
        let there = tree.pointer(&path);
        let found = there.filter(|found| !found.is_null());
        let text = found.and_then(|found| found.as_str()).map(|text| Cell::String(text.into()));
        prop_assert_eq!(&json.cells[2], &text);
        prop_assert_eq!(&json.cells[3], &found.and_then(|found| found.as_bool()).map(Cell::Boolean));
        if let Some(number) = found.and_then(|found| found.as_i64()) {
            prop_assert_eq!(&json.cells[0], &Some(Cell::Int64(number)));
        }
        if let Some(Cell::Double(number)) = json.cells[1] {
            prop_assert_eq!(Some(number), found.and_then(|found| found.as_f64()));
        }
        // Nothing is missing without being told.
        let held = json.cells.iter().filter(|cell| cell.is_some()).count();
        prop_assert_eq!(there.is_none(), json.unfit == Some(Unfit::Missing));
        prop_assert!(found.is_none() == (held == 0 && json.unfit.is_none()) || json.unfit.is_some());
    }

    #[test]
    fn no_bytes_make_it_panic(payload in prop::collection::vec(any::<u8>(), 0..200), which in 0..4usize) {
        let form = [Form::Json, Form::Cbor, Form::SenmlJson, Form::SenmlCbor][which];
        let columns = columns(form, &[("a", "/a", ColumnType::Timestamp), ("b", "/0", ColumnType::Double)]);
        prop_assert_eq!(decode(&columns, &payload).cells.len(), 2);
    }

    #[test]
    fn no_damage_makes_a_pack_panic(damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6)) {
        let mut payload = PACK.as_bytes().to_vec();
        for (at, value) in damage {
            let at = at.index(payload.len());
            payload[at] = value;
        }
        let columns = columns(Form::SenmlJson, &[("v", "voltage", ColumnType::Double), ("at", "current", ColumnType::Timestamp)]);
        prop_assert_eq!(decode(&columns, &payload).cells.len(), 2);
    }
}
