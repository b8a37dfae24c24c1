//! Subscribers whose applications are slow: what the study's words become, and what is said of those that cannot be.

use pubgauge_workload::Nanos;

use crate::one_flow::plan;

#[test]
fn so_many_of_the_first_are_slow() {
    const MS: Nanos = 1_000_000;
    for (subscribers, takes, count, time) in [
        ("2", "\"5ms\"", 2, 5 * MS),
        ("\"10%\"", "\"200/s\"", 1, 5 * MS),
        ("\"50%\"", "\"1.5ms\"", 5, 1_500_000),
        ("9", "\"3/min\"", 9, 20_000 * MS),
    ] {
        let flow = format!(
            "subscribers = 10\nrate = \"1/s\"\nslow = {{ subscribers = {subscribers}, takes = {takes} }}"
        );
        let plan = plan(&flow).expect("sound");
        let subscribers = &plan.trials[0].workload.flows[0].subscribers;
        let times: Vec<Option<Nanos>> = subscribers.iter().map(|s| s.takes).collect();
        let expected = (0..10).map(|number| (number < count).then_some(time));
        assert_eq!(times, expected.collect::<Vec<_>>(), "{flow}");
    }
}

#[test]
fn who_cannot_be_slow_is_refused_where_it_is_written() {
    let slow = |subscribers: &str, takes: &str| {
        format!("slow = {{ subscribers = {subscribers}, takes = {takes} }}")
    };
    let usual = slow("1", "\"5ms\"");
    for (flow, place, said) in [
        (
            format!("rate = \"1/s\"\nsubscribers = 3\n{}", slow("3", "\"5ms\"")),
            ":8:",
            "3 of 3 subscribers would be slow",
        ),
        (
            format!("rate = \"1/s\"\nsubscribers = 3\n{}", slow("0", "\"5ms\"")),
            ":8:",
            "at least one",
        ),
        (
            format!(
                "rate = \"1/s\"\nsubscribers = 3\n{}",
                slow("\"0%\"", "\"5ms\"")
            ),
            ":8:",
            "at least one",
        ),
        (
            format!(
                "rate = \"1/s\"\nsubscribers = 3\n{}",
                slow("\"few\"", "\"5ms\"")
            ),
            ":8:",
            "no percentage",
        ),
        (
            format!("rate = \"1/s\"\nsubscribers = 3\n{}", slow("-1", "\"5ms\"")),
            ":8:",
            "1 or more",
        ),
        (
            format!("rate = \"1/s\"\nsubscribers = 3\n{}", slow("1", "\"0ms\"")),
            ":8:",
            "expected some time",
        ),
        (
            format!(
                "rate = \"1/s\"\nsubscribers = 3\n{}",
                slow("1", "\"5/s-each\"")
            ),
            ":8:",
            "the rate of one subscriber",
        ),
        (
            format!("rate = \"1/s\"\nsubscribers = 3\n{}", slow("1", "5")),
            ":8:",
            "5",
        ),
        (
            "rate = \"1/s\"\nsubscribers = 3\nslow = { takes = \"5ms\" }".to_owned(),
            ":8:",
            "subscribers",
        ),
        (
            format!("rate = \"max\"\nsubscribers = 3\n{usual}"),
            ":8:",
            "a schedule that waits for nobody",
        ),
        (
            format!("burst = 5\nsubscribers = 3\n{usual}"),
            ":8:",
            "a schedule that waits for nobody",
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
            "comes and goes is not slow as well",
        ),
        (
            format!("rate = \"1/s\"\nsubscribers = 3\nexchange = \"ping-pong\"\n{usual}"),
            "",
            "a schedule that waits for nobody",
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
