//! Columns of some topics, and levels of topics as columns.

use super::*;

fn column(name: &str, source: Source, of: ColumnType, topics: Option<&str>) -> Column {
    Column {
        name: name.into(),
        source,
        of,
        unit: TimeUnit::S,
        topics: topics.map(str::to_owned),
    }
}

fn level(nth: usize, of: ColumnType) -> Column {
    column("level", Source::TopicLevel(nth), of, None)
}

#[test]
fn a_level_of_the_topic_is_text_or_a_number_as_numbers_are_written() {
    let of = |topic: &str, nth, of| {
        let columns = Columns {
            form: None,
            keep_raw: true,
            columns: vec![level(nth, of)],
        };
        let decoded = columns.decode(topic, &[0xff], SEVEN_NS).unwrap();
        assert_eq!(decoded.is_whole(), decoded.unfit.is_none());
        match decoded.unfit {
            None => Ok(decoded.cells[0].clone()),
            Some(unfit) => Err(unfit),
        }
    };
    let text = |text: &str| Ok(Some(Cell::String(text.into())));
    let (string, int64) = (ColumnType::String, ColumnType::Int64);
    assert_eq!(of("site/7/watts", 0, string), text("site"));
    assert_eq!(of("site/7/watts", 1, string), text("7"));
    assert_eq!(of("site/7/watts", 1, int64), Ok(Some(Cell::Int64(7))));
    assert_eq!(of("/a", 0, string), text(""));
    assert_eq!(
        of("a/-9223372036854775808", 1, int64),
        Ok(Some(Cell::Int64(i64::MIN)))
    );
    for (topic, unfit) in [
        ("a/07", Unfit::Value),
        ("a/+7", Unfit::Value),
        ("a/x", Unfit::Value),
        ("a/9223372036854775808", Unfit::Value),
        ("a", Unfit::Missing),
    ] {
        assert_eq!(of(topic, 1, int64), Err(unfit), "{topic}");
    }
}

#[test]
fn a_message_has_the_columns_of_its_topic_alone() {
    let watts = Source::pointer("/watts").unwrap();
    let litres = Source::pointer("/litres").unwrap();
    let columns = Columns {
        form: Some(Form::Json),
        keep_raw: false,
        columns: vec![
            level(1, ColumnType::String),
            column("watts", watts, ColumnType::Double, Some("power/#")),
            column("litres", litres, ColumnType::Double, Some("water/+")),
        ],
    };
    let site = Some(Cell::String("7".into()));
    let decode = |topic: &str, payload: &str| {
        let decoded = columns.decode(topic, payload.as_bytes(), SEVEN_NS).unwrap();
        let keeps = columns.keeps(Some(&decoded));
        (decoded.cells, decoded.unfit, keeps)
    };
    assert_eq!(
        decode("power/7", r#"{"watts": 1.5}"#),
        (
            vec![site.clone(), Some(Cell::Double(1.5)), None],
            None,
            false
        )
    );
    assert_eq!(
        decode("water/7", r#"{"litres": 2}"#),
        (
            vec![site.clone(), None, Some(Cell::Double(2.0))],
            None,
            false
        )
    );
    assert_eq!(
        decode("water/7", r#"{"watts": 1.5}"#),
        (vec![site.clone(), None, None], Some(Unfit::Missing), true)
    );
    assert_eq!(
        decode("power/7", "no JSON"),
        (vec![site.clone(), None, None], Some(Unfit::Form), true)
    );
    // Nobody asks for anything in it: it is not looked into, and is kept.
    assert_eq!(
        decode("gas/7", "no JSON"),
        (vec![site, None, None], None, true)
    );
}
