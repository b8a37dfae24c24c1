//! Subscribers that come late: what the study's words become, and what is said of those that cannot be.

use pubgauge_workload::Nanos;

use crate::one_flow::plan;

#[test]
fn so_many_of_the_last_are_late() {
    const SECOND: Nanos = 1_000_000_000;
    for (subscribers, after, count, time) in [
        ("2", "3s", 2, 3 * SECOND),
        ("\"10%\"", "500ms", 1, SECOND / 2),
        ("\"50%\"", "0s", 5, 0),
        ("9", "9.9s", 9, 9_900_000_000),
    ] {
        let flow = format!(
            "subscribers = 10\nrate = \"1/s\"\nlate = {{ subscribers = {subscribers}, after = \"{after}\" }}"
        );
        let plan = plan(&flow).expect("sound");
        let subscribers = &plan.trials[0].workload.flows[0].subscribers;
        let times: Vec<Option<Nanos>> = subscribers.iter().map(|s| s.late).collect();
        let expected = (0..10).map(|number| (number >= 10 - count).then_some(time));
        assert_eq!(times, expected.collect::<Vec<_>>(), "{flow}");
    }
}

#[test]
fn who_cannot_be_late_is_refused_where_it_is_written() {
    let late = |subscribers: &str, after: &str| {
        format!("late = {{ subscribers = {subscribers}, after = {after} }}")
    };
    let usual = late("1", "\"2s\"");
    for (flow, place, said) in [
        (
            format!("rate = \"1/s\"\nsubscribers = 3\n{}", late("3", "\"2s\"")),
            ":8:",
            "3 of 3 subscribers would be late",
        ),
        (
            format!("rate = \"1/s\"\nsubscribers = 3\n{}", late("0", "\"2s\"")),
            ":8:",
            "at least one",
        ),
        (
            format!("rate = \"1/s\"\nsubscribers = 3\n{}", late("1", "2")),
            ":8:",
            "2",
        ),
        (
            "rate = \"1/s\"\nsubscribers = 3\nlate = { after = \"2s\" }".to_owned(),
            ":8:",
            "subscribers",
        ),
        (
            format!("rate = \"1/s\"\nsubscribers = 3\n{}", late("1", "\"10s\"")),
            "",
            "before the measurement ends",
        ),
        (
            format!("rate = \"1/s\"\npattern = \"shared\"\nsubscribers = 3\n{usual}"),
            ":9:",
            "members of a group share",
        ),
        (
            format!(
                "rate = \"1/s\"\nsubscribers = 3\n{usual}\npresence = {{ of = \"subscribers\", online = \"5s\", offline = \"1s\" }}"
            ),
            "",
            "comes and goes is not late as well",
        ),
        (
            format!(
                "rate = \"1/s\"\nsubscribers = 3\n{usual}\nslow = {{ subscribers = 2, takes = \"1ms\" }}"
            ),
            "",
            "all subscribers are late or slow",
        ),
        (
            format!(
                "rate = \"1/s\"\nsubscribers = 3\npublishers = 3\nsubscribe-as = \"d\"\npublish-as = \"d\"\n{usual}"
            ),
            "",
            "one use alone",
        ),
    ] {
        let error = plan(&flow).expect_err(&flow).to_string();
        assert!(
            error.contains(said) && error.contains(place),
            "{flow}: {error}"
        );
    }
}
