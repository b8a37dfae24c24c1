//! Claims that cells do not tell whatever is measured there, trials that are older than a rule, and versions.

use pubgauge_claims::Outcome::{
    CannotTell, DoesNotHold, Holds, InPart, NotApplicable, OfVersion, StandInDoesNotHold,
};
use pubgauge_claims::{open, rule_sentence};
use pubgauge_figures::rule::{Claim, ClaimPart};

use crate::planted;
use planted::{World, above, claim, rule};

/// `a` is `ratio` times `b`.
fn world(ratio: f64) -> World {
    let mut world = World::new(1);
    world.plant("a", "64B", ratio, 0.05, 6);
    world.plant("b", "64B", 1.0, 0.05, 6);
    world
}

fn order() -> Claim {
    claim(vec![rule(&["a", "b"], above(1.0))])
}

fn words(claim: &Claim) -> String {
    rule_sentence(claim, &|_, value| value.to_string())
}

#[test]
fn a_bed_that_decides_in_place_of_the_system_tells_nothing() {
    let mut bed = order();
    bed.needs.untold = Some("the bed decides".into());
    bed.told_by = Some("machines of their own".into());
    for ratio in [0.5, 2.0] {
        let found = world(ratio).judge(&bed);
        assert_eq!(found.outcome, CannotTell);
        assert_eq!(
            found.reason,
            "the bed decides; would tell: machines of their own"
        );
        assert_eq!(
            world(ratio).as_run(|run| open(&bed, run)),
            None,
            "no repeats are asked for"
        );
    }
    assert!(words(&bed).contains("the bed decides"));
}

#[test]
fn a_part_that_is_not_told_leaves_the_claim_open_unless_another_fails() {
    let mut both = claim(vec![
        rule(&["a", "b"], above(1.0)),
        rule(&["a", "b"], above(1.0)),
    ]);
    both.parts[1].needs.untold = Some("the bed decides".into());
    let open = world(2.0).judge(&both);
    assert_eq!(open.outcome, CannotTell);
    assert!(open.reason.contains("b: the bed decides"), "{open:?}");
    assert_eq!(world(0.5).judge(&both).outcome, DoesNotHold);
    // Alone it is not judged either, without a rule too.
    both.parts = vec![ClaimPart {
        needs: both.parts[1].needs.clone(),
        ..ClaimPart::default()
    }];
    assert_eq!(world(2.0).judge(&both).outcome, CannotTell);
}

#[test]
fn what_would_tell_stands_behind_every_reason_and_no_answer() {
    let mut told = order();
    told.told_by = Some("ten minutes more".into());
    let end = "would tell: ten minutes more";
    assert!(world(1.0).judge(&told).reason.ends_with(end));
    assert_eq!(world(2.0).judge(&told).reason, "");
    told.needs.never = Some("it cannot be had".into());
    let never = world(2.0).judge(&told);
    assert_eq!(never.outcome, NotApplicable);
    assert_eq!(never.reason, format!("it cannot be had; {end}"));
}

#[test]
fn trials_of_before_the_rule_do_not_count() {
    let mut since = order();
    since.not_before = Some("2026-11-30".into());
    let mut planted = world(2.0);
    for (day, outcome) in [
        (None, Holds),
        (Some("2026-11-27"), CannotTell),
        (Some("2026-11-30"), Holds),
        (Some("2027-01-02"), Holds),
    ] {
        planted.day = day.map(str::to_owned);
        assert_eq!(planted.judge(&since).outcome, outcome, "{day:?}");
    }
    assert!(words(&since).ends_with("Trials from 2026-11-30 on count."));
}

#[test]
fn what_does_not_hold_may_be_true_of_its_version() {
    let mut old = order();
    old.needs.of_version = Some("1.3 did not, 1.4 does".into());
    let found = world(0.5).judge(&old);
    assert_eq!(found.outcome, OfVersion);
    assert!(
        found.reason.starts_with("1.3 did not, 1.4 does; here: a/b"),
        "{found:?}"
    );
    assert_eq!(world(2.0).judge(&old).outcome, Holds);
    assert_eq!(world(1.0).judge(&old).outcome, CannotTell);
    // Of a stand-in nothing follows for a version.
    old.stand_in = Some("a for A".into());
    assert_eq!(world(0.5).judge(&old).outcome, StandInDoesNotHold);
}

#[test]
fn a_part_may_be_true_of_its_version() {
    let mut parts = claim(vec![
        rule(&["a", "b"], above(1.0)),
        rule(&["b", "a"], above(1.0)),
    ]);
    parts.parts[1].needs.of_version = Some("1.3 did".into());
    let both = world(2.0).judge(&parts);
    assert_eq!(both.outcome, InPart);
    assert!(
        both.reason
            .starts_with("holds: a; true of its version: b (1.3 did; here: "),
        "{both:?}"
    );
    // Where another part fails of the version that is meant, the claim does not hold.
    parts.parts[0] = ClaimPart {
        name: "a".into(),
        needs: Default::default(),
        ..parts.parts[1].clone()
    };
    assert_eq!(world(2.0).judge(&parts).outcome, DoesNotHold);
    // Where all that fails is of another version, that is what it is.
    parts.parts.remove(0);
    assert_eq!(world(2.0).judge(&parts).outcome, OfVersion);
}
