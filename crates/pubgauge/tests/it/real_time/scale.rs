//! A study at a size of its own: what runs, what its results say, and that a run goes on at that size.

use crate::common;

use common::Place;

const STUDY: &str = r#"
name = "sizes"
systems = ["simulated"]
repeats = 3

# On a busy machine, too.
[client]
pacing-within = "100ms"

[phases]
warm-up = "10ms"
measure = "200ms"

[[workload]]
name = "few"
grid = { payload = ["64B", "1KiB"] }
flow = [{ rate = "1k/s" }]

[[workload]]
name = "many"
repeats = 4
grid = { "flow.readings.publishers" = [1, 2] }
flow = [{ name = "readings", payload = "64B", rate = "1k/s" }]

[[claim]]
id = "C1"
sentence = "Nothing is lost."
source = "a paper"
figure = "lost"
where = { workload = "few", payload = ["64B", "1KiB"] }
# What a busy machine does to a rate is not asked here.
verdicts = ["valid", "unsteady", "overloaded", "client-bound"]
rule = { sides = ["simulated"], count = "= 0", along = "payload" }

[[claim]]
id = "C2"
sentence = "Nothing is lost with several publishers."
source = "a paper"
figure = "lost"
where = { workload = "many" }
verdicts = ["valid", "unsteady", "overloaded", "client-bound"]
rule = { sides = ["simulated"], count = "= 0", along = "publishers" }

[scale.smoke]
workload = [
    { name = "few", grid = { payload = ["64B"] } },
    { name = "many", repeats = 0 },
]
"#;

#[test]
fn a_run_at_a_scale_says_so_and_goes_on_at_it() {
    let place = Place::new();
    std::fs::write(place.path_to("sizes.toml"), STUDY).expect("written");
    let full = place.run(&["run", "sizes.toml", "--out", "full"]).exits(0);
    let results = place.results("full");
    assert_eq!(
        results["trials"].as_array().expect("trials").len(),
        2 * 3 + 2 * 4
    );
    assert_eq!(results["study"].get("scale"), None);
    for claim in results["claims"].as_array().expect("claims") {
        assert_eq!(claim["outcome"], "holds", "{claim}");
    }
    assert!(!full.out.contains("at scale"), "{}", full.out);

    let small = place
        .run(&["run", "sizes.toml", "--scale", "smoke", "--out", "small"])
        .exits(0);
    let results = place.results("small");
    assert_eq!(results["trials"].as_array().expect("trials").len(), 3);
    assert_eq!(results["study"]["scale"], "smoke");
    for (nth, cell) in ["simulated at 1KiB", "not measured"].iter().enumerate() {
        let claim = &results["claims"][nth];
        assert_eq!(claim["outcome"], "cannot-tell");
        let reason = claim["reason"].as_str().expect("a reason");
        assert!(reason.contains(cell), "{reason}");
        assert!(reason.contains("not measured at scale smoke"), "{reason}");
    }
    assert!(
        small.out.contains("This is the study at scale smoke"),
        "{}",
        small.out
    );
    let page = std::fs::read_to_string(place.path_to("small/report.html")).expect("the page");
    assert!(page.contains("<h1>sizes, at scale smoke</h1>"));

    // The stored study is the study at that size: alone, or named with the same flags.
    place.run(&["run", "--resume", "small"]).exits(0);
    let flags = ["run", "sizes.toml", "--scale", "smoke", "--resume", "small"];
    place.run(&flags).exits(0);
    place
        .run(&["run", "sizes.toml", "--resume", "small"])
        .exits(3);
    assert_eq!(place.results("small")["study"]["scale"], "smoke");

    let plan = place.run(&["plan", "sizes.toml"]).exits(0);
    assert!(
        plan.out.contains("repeats: 3 (few), 4 (many)"),
        "{}",
        plan.out
    );
    let plan = place
        .run(&["plan", "sizes.toml", "--scale", "smoke"])
        .exits(0);
    assert!(
        plan.out.starts_with("study sizes, at scale smoke\n"),
        "{}",
        plan.out
    );
    let wrong = place
        .run(&["plan", "sizes.toml", "--scale", "smok"])
        .exits(3);
    assert!(
        wrong.err.contains("the study has smoke, and full"),
        "{}",
        wrong.err
    );
    let flags = ["plan", "--rate", "10/s", "--scale", "smoke"];
    let wrong = place.run(&flags).exits(3);
    assert!(
        wrong.err.contains("the study has no scales"),
        "{}",
        wrong.err
    );
    place.is_clean();
}
