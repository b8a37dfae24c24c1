//! Devices that come and go: what the study's words become, and what is said of those that cannot be.

use pubgauge_workload::SECOND;
use pubgauge_workload::presence::{Between, Presence};

use crate::one_flow::plan;

#[test]
fn times_are_one_or_two() {
    let flow = "rate = \"1/s\"\npresence = { online = \"5min\", offline = \"30s..10min\" }";
    let plan = plan(flow).expect("sound");
    let expected = Presence {
        publishers: true,
        subscribers: true,
        online: Between::exactly(300 * SECOND),
        offline: Between {
            least: 30 * SECOND,
            most: 600 * SECOND,
        },
        spread: true,
        back_within: None,
        vanishes: false,
    };
    let flow = &plan.trials[0].workload.flows[0];
    assert_eq!(flow.presence.as_deref(), Some(&expected));
}

#[test]
fn what_cannot_come_and_go_is_refused_where_it_is_written() {
    let presence = |more: &str| format!("presence = {{ online = \"5s\", offline = \"1s\"{more} }}");
    for (flow, said) in [
        (format!("rate = \"max\"\n{}", presence("")), "need a schedule"),
        (
            format!("rate = \"1/s\"\n{}", presence(", back-within = \"5s\"")),
            "less than `online`",
        ),
        (
            format!("rate = \"1/s\"\n{}", presence(", back-within = \"1s\", first = \"spread\"")),
            "all leave together",
        ),
        (
            "rate = \"1/s\"\npresence = { online = \"5s..1s\", offline = \"1s\" }".to_owned(),
            "the second is longer",
        ),
        (
            "rate = \"1/s\"\npresence = { online = \"5s..9s\", offline = \"1s\", back-within = \"1s\" }".to_owned(),
            "one time, not a range",
        ),
        (
            format!("rate = \"1/s\"\npattern = \"shared\"\nsubscribers = 2\n{}", presence("")),
            "members of a group",
        ),
        (
            "rate = \"1/s\"\npresence = { online = \"soon\", offline = \"1s\" }".to_owned(),
            "soon",
        ),
        (
            format!(
                "rate = \"1/s\"\npublish-as = \"d\"\n{}\n[[workload.flow]]\nname = \"other\"\npayload = \"64B\"\nrate = \"max\"\npublish-as = \"d\"",
                presence("")
            ),
            "needs a schedule",
        ),
    ] {
        let error = plan(&flow).expect_err(&flow).to_string();
        assert!(error.contains(said), "{flow}: {error}");
    }
}
