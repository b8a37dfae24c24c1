//! A load that changes over time, from the study to the page, on a real broker.

use crate::common;

use common::*;

const STUDY: &str = r#"
name = "steps"
systems = ["mosquitto"]
phases = { warm-up = "1s", measure = "10s" }
[[workload]]
name = "steps"
[[workload.flow]]
publishers = 30
payload = "100B"
rate = { steps = [{ to = "300/s", for = "3s" }, { to = "50/s-each", for = "4s" }, { to = "600/s" }] }
settings = { reliability = "at-least-once" }
"#;

#[test]
fn mosquitto_gets_each_step_in_its_seconds() {
    let place = Place::new();
    std::fs::write(place.path_to("steps.toml"), STUDY).expect("written");
    let planned = place.run(&["plan", "steps.toml"]).exits(0).out;
    let planned: Vec<&str> = planned.split_whitespace().collect();
    for words in ["on average in 870 messages", "at the peak in 1500 messages"] {
        assert!(planned.join(" ").contains(words), "{words}: {planned:?}");
    }
    place.run(&["run", "steps.toml", "--out", "run", "--listen", "0"]);
    let results = place.results("run");
    let trial = &results["trials"][0];
    adds_up(trial);
    // Every message of the course, none twice, none of another rate.
    let all = 3 * 300 + 4 * 1_500 + 3 * 600;
    assert_eq!(count(trial, "offered"), all, "{}", brief(trial));
    assert_eq!(count(trial, "delivered"), all, "{}", brief(trial));
    let corners = [
        [0.0, 300.0],
        [3.0, 300.0],
        [3.0, 1500.0],
        [7.0, 1500.0],
        [7.0, 600.0],
        [10.0, 600.0],
    ];
    assert_eq!(
        trial["flows"][0]["rate_over_time"],
        serde_json::json!(corners)
    );
    // A message may leave late on a busy machine, and never before it is due.
    let series = trial["series"].as_array().expect("records");
    let published = series
        .iter()
        .map(|record| record["published"].as_u64().expect("a count"));
    let mut sum = 0;
    let mut due = 0;
    for (second, published) in (0..10).zip(published) {
        sum += published;
        due += [300, 1_500, 600][usize::from(second >= 3) + usize::from(second >= 7)];
        assert!(sum <= due + 15, "second {second}: {sum} of {due}");
    }
    let page = std::fs::read_to_string(place.path_to("run/report.html")).expect("a page");
    assert!(page.contains("asked_msgs_per_s"));
    place.is_clean();
}
