//! Claims of real papers: they can be written in few lines, and say in words what they judge.

use std::fmt::Write as _;
use std::path::Path;

use pubgauge_strict_toml::InvalidInput;
use pubgauge_study::{Plan, PlanOptions, Study};

const CLAIMS: &str = include_str!("data/claims.toml");

fn planned(text: &str) -> Result<Plan, InvalidInput> {
    let options = PlanOptions::with_systems(["mosquitto"]);
    Study::parse("claims.toml", text, Path::new("."))?.plan(&options)
}

#[test]
fn claims_of_five_papers_in_words() {
    let plan = planned(CLAIMS).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(plan.claims.len(), 22);
    let show = |_: &str, value: f64| pubgauge_quantities::shown::number(value);
    let mut said = String::new();
    for claim in &plan.claims {
        writeln!(
            said,
            "{}: {}\n    {}\n",
            claim.id,
            claim.sentence,
            pubgauge_claims::rule_sentence(claim, &show)
        )
        .expect("text");
    }
    insta::assert_snapshot!("words", said);
}

/// The stored question of a run says the same.
#[test]
fn a_resolved_study_has_the_same_claims() {
    let plan = planned(CLAIMS).unwrap_or_else(|e| panic!("{e}"));
    let again = planned(&plan.resolved).unwrap_or_else(|e| panic!("{e}\n{}", plan.resolved));
    assert_eq!(plan.claims, again.claims);
}

#[test]
fn a_claim_takes_about_eight_lines() {
    let claims: Vec<&str> = CLAIMS.split("[[claim]]\n").skip(1).collect();
    let lines = |claim: &&str| claim.trim_end().lines().count();
    let total: usize = claims.iter().map(lines).sum();
    assert!(
        total <= 8 * claims.len(),
        "{total} lines of {} claims",
        claims.len()
    );
}

#[test]
fn claims_keep_to_the_schema() {
    let validator = jsonschema::validator_for(&pubgauge_study::schema()).expect("a sound schema");
    let value: toml::Table = CLAIMS.parse().expect("TOML");
    let value = serde_json::to_value(value).expect("JSON");
    let errors: Vec<String> = validator
        .iter_errors(&value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

#[test]
fn each_mistake_has_its_message() {
    let cases = [
        ("no rule", "figure = \"lost\""),
        (
            "no day",
            "not-before = \"30 November\"\nfigure = \"lost\"\nrule = { sides = [\"a\"], count = \"= 0\" }",
        ),
        (
            "a margin of no ratio",
            "figure = \"lost\"\nrule = { sides = [\"a\"], count = \"= 0\", margin = \"2%\" }",
        ),
        (
            "a margin that is no share",
            "figure = \"lost\"\nrule = { sides = [\"a\", \"b\"], ratio = \"> 1\", margin = \"0.02\" }",
        ),
        ("no judge", "figure = \"lost\"\nrule = { sides = [\"a\"] }"),
        (
            "two judges",
            "figure = \"lost\"\nrule = { sides = [\"a\"], count = \"= 0\", value = \"< 1\" }",
        ),
        ("no figure", "rule = { sides = [\"a\"], count = \"= 0\" }"),
        (
            "unknown figure",
            "figure = \"latency.p98\"\nrule = { sides = [\"a\", \"b\"], ratio = \"> 1\" }",
        ),
        (
            "unknown figure of a quotient",
            "figure = \"lost / exepcted\"\nrule = { sides = [\"a\"], value = \"< 0.1\" }",
        ),
        (
            "unknown key",
            "figure = \"lost\"\nrule = { sides = [\"a\"], cuont = \"= 0\" }",
        ),
        (
            "no range",
            "figure = \"lost\"\nrule = { sides = [\"a\", \"b\"], ratio = \"1\" }",
        ),
        (
            "empty range",
            "figure = \"lost\"\nrule = { sides = [\"a\", \"b\"], ratio = \"2..1\" }",
        ),
        (
            "value without unit",
            "figure = \"latency.p99\"\nrule = { sides = [\"a\"], value = \"< 1\" }",
        ),
        (
            "no percentage",
            "figure = \"lost\"\nrule = [{ sides = [\"a\"], count = \"= 0\" }, { sides = [\"a\", \"b\"], equal = \"0.1\" }]",
        ),
        (
            "one side",
            "figure = \"lost\"\nrule = { sides = [\"a\"], ratio = \"> 1\" }",
        ),
        (
            "a pair where one is judged",
            "figure = \"lost\"\nrule = { sides = [\"a\"], against = [\"b\"], value = \"< 1\" }",
        ),
        ("no sides", "figure = \"lost\"\nrule = { count = \"= 0\" }"),
        (
            "no axis",
            "figure = \"lost\"\nrule = { sides = [\"a\"], rises = \"5%\" }",
        ),
        (
            "points without an axis",
            "figure = \"lost\"\nrule = { sides = [\"a\", \"b\"], ratio = \"> 1\", at = \"some\" }",
        ),
        (
            "crossing the wrong way round",
            "figure = \"lost\"\nrule = { sides = [\"a\", \"b\"], cross = [\"2KiB\", \"64B\"], along = \"payload\" }",
        ),
        (
            "unknown verdict",
            "figure = \"lost\"\nverdicts = [\"lossi\"]\nrule = { sides = [\"a\"], count = \"= 0\" }",
        ),
        (
            "share of a curve",
            "figure = \"lost\"\nshare = \"50%\"\nrule = { sides = [\"a\"], flat = \"5%\", along = \"payload\" }",
        ),
        (
            "sustained without an axis",
            "figure = \"sustained\"\nrule = { sides = [\"a\", \"b\"], ratio = \"> 1\" }",
        ),
        (
            "share of trials as a ratio",
            "figure = \"loss-free\"\nrule = { sides = [\"a\", \"b\"], ratio = \"> 1\" }",
        ),
        (
            "limit of a slope",
            "figure = \"limit\"\nrule = { sides = [\"a\", \"b\"], slope = \"less\", along = \"payload\" }",
        ),
        (
            "side that is no cells",
            "figure = \"lost\"\nrule = { sides = [3], count = \"= 0\" }",
        ),
        (
            "unknown verdict of a part",
            "figure = \"lost\"\nrule = [{ sides = [\"a\"], count = \"= 0\", verdicts = [\"lossi\"] }]",
        ),
        (
            "a range the wrong way round",
            "figure = \"lost\"\nwhere = { payload = \"1KiB..64B\" }\nrule = { sides = [\"a\"], count = \"= 0\" }",
        ),
        (
            "a value that is no value",
            "figure = \"lost\"\nwhere = { payload = { of = 1 } }\nrule = { sides = [\"a\"], count = \"= 0\" }",
        ),
        (
            "a judge beside parts",
            "figure = \"lost\"\nrule = { any = [{ sides = [\"a\"], count = \"= 0\" }], flat = \"5%\" }",
        ),
        (
            "more than there are",
            "figure = \"lost\"\nrule = [{ any = [{ sides = [\"a\"], count = \"= 0\" }], least = 2 }]",
        ),
        (
            "a mistake in a part of a part",
            "figure = \"lost\"\nrule = [{ any = [{ all = [{ sides = [\"a\"], count = \"none\" }] }] }]",
        ),
        (
            "least without parts",
            "figure = \"lost\"\nrule = { sides = [\"a\"], count = \"= 0\", least = 1 }",
        ),
        (
            "a gap of one",
            "figure = \"delivered-rate\"\nrule = { sides = [\"a\"], gap = true, value = \"> 2\" }",
        ),
        (
            "no series",
            "figure = \"send-lag.p90.cv\"\nrule = { sides = [\"a\"], value = \"< 0.1\" }",
        ),
        (
            "no such side",
            "figure = \"lost\"\nrule = { sides = [{ side = \"dss\" }], count = \"= 0\" }\n[side]\ndds = [\"a\", \"b\"]",
        ),
        (
            "a side as a filter",
            "figure = \"lost\"\nwhere = { side = \"dds\" }\nrule = { sides = [\"a\"], count = \"= 0\" }",
        ),
        (
            "differences without a unit",
            "figure = \"latency.p50\"\nrule = { sides = [\"a\"], rises = \"0\", along = \"payload\" }",
        ),
        (
            "a flow's processor time",
            "figure = \"system-cpu-per-message\"\nwhere = { flow = \"f\" }\nrule = { sides = [\"a\"], value = \"> 1\" }",
        ),
        (
            "the same, of a side",
            "figure = \"publishers-blocked\"\nrule = { sides = [{ system = \"a\", flow = \"f\" }], value = \"> 1%\" }",
        ),
        (
            "id twice",
            "not-applicable = \"no\"\n[[claim]]\nid = \"T01\"\nsentence = \"s\"\nsource = \"t\"\nnot-applicable = \"no\"",
        ),
    ];
    let start = "name = \"t\"\n[[workload]]\nname = \"w\"\nflow = [{ payload = \"64B\", rate = \"1/s\" }]\n\
                 [[claim]]\nid = \"T01\"\nsentence = \"s\"\nsource = \"t\"\n";
    let mut said = String::new();
    for (name, lines) in cases {
        let error = match planned(&format!("{start}{lines}\n")) {
            Ok(_) => panic!("{name}: this was accepted:\n{lines}"),
            Err(error) => error,
        };
        writeln!(said, "## {name}\n{error}\n").expect("text");
    }
    insta::assert_snapshot!("mistakes", said);
}
