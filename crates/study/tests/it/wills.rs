//! Last wills of devices that come and go: what the study's words become, and what is said of those that cannot be.

use pubgauge_workload::LastWill;

use crate::one_flow::plan;

/// A flow whose publishers have this will, heard by its subscribers.
fn flow(will: &str) -> String {
    format!(
        "rate = \"1/s\"\npublishers = 3\nsubscribe = [\"t/#\", \"gone/#\"]\ntopic = \"t/{{m}}\"\ndimensions = {{ m = 3 }}\n\
         presence = {{ of = \"publishers\", online = \"2s\", offline = \"1s\", leave = \"vanish\", will = {will} }}"
    )
}

#[test]
fn each_device_has_its_will() {
    let of = |will: &str| -> Vec<LastWill> {
        let plan = plan(&flow(will)).expect("sound");
        let devices = &plan.trials[0].workload.devices;
        devices
            .iter()
            .flat_map(|d| d.will.as_deref().cloned())
            .collect()
    };
    let usual = of("{ topic = \"gone/meter-{n}\" }");
    let topics: Vec<&str> = usual.iter().map(|will| will.topic.as_str()).collect();
    assert_eq!(topics, ["gone/meter-0", "gone/meter-1", "gone/meter-2"]);
    assert_eq!(
        usual[0],
        LastWill {
            topic: "gone/meter-0".into(),
            bytes: 32,
            retain: false,
            qos: None,
            delay_s: 0,
        }
    );
    let all =
        of("{ topic = \"gone/all\", payload = \"120B\", qos = 2, retain = true, delay = \"5s\" }");
    let expected = LastWill {
        topic: "gone/all".into(),
        bytes: 120,
        retain: true,
        qos: Some(2),
        delay_s: 5,
    };
    assert_eq!(all, [expected.clone(), expected.clone(), expected]);
}

#[test]
fn a_will_that_cannot_be_is_refused_where_it_is_written() {
    for (will, place, said) in [
        (
            "{ topic = \"gone\", payload = \"8B\" }",
            ":11:",
            "16 B to 65,535 B",
        ),
        (
            "{ topic = \"gone\", payload = \"64KiB\" }",
            ":11:",
            "16 B to 65,535 B",
        ),
        ("{ topic = \"gone\", qos = 3 }", ":11:", "0, 1 or 2"),
        (
            "{ topic = \"gone\", delay = \"1500ms\" }",
            ":11:",
            "whole seconds",
        ),
        (
            "{ topic = \"gone/{meter}\" }",
            ":11:",
            "no placeholder but `{n}`",
        ),
        ("{ payload = \"32B\" }", ":11:", "topic"),
        ("{ topic = \"gone/#\" }", "", "goes to one topic"),
        (
            "{ topic = \"elsewhere/{n}\" }",
            "",
            "no subscriber hears it",
        ),
    ] {
        let why = plan(&flow(will)).expect_err(will).to_string();
        assert!(why.contains(said), "{will}: {why}");
        assert!(why.contains(place), "{will}: {why}");
    }
}

#[test]
fn who_comes_and_goes_hears_no_wills_for_the_figures() {
    let all_go = flow("{ topic = \"gone/{n}\" }").replace("of = \"publishers\", ", "");
    let why = plan(&all_go).expect_err("nobody stays").to_string();
    assert!(why.contains("no subscriber hears it"), "{why}");
}
