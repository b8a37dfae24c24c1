//! Planted boxes: what so many of them carry together is known, and so is what holds them up.

use pubgauge_advice::{
    Advice, Adviser, BoxPlan, Candidate, Fleet, KnownBy, Room, Stage, StageKind, Variation,
    WhyNotTold, render,
};
use pubgauge_driver::Reliability;
use pubgauge_figures::model::HeldLimits;
use pubgauge_figures::search::{LimitedBy, NoteOf, Search, SearchNote};
use pubgauge_figures::{AxisValue, Results, Rule, Status, Trial};
use pubgauge_fixtures::TrialBuilder;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Normal};

const SEEDS: u64 = 1_000;
/// Messages a second of the fleet's busiest kind.
const FLEET_PER_S: f64 = 100.0;
/// Standard deviation of the middle of a search's interval, as a share.
const DEVIATION: f64 = 0.04;
const METERS: &str =
    "[[devices]]\nname = \"meters\"\ncount = 100\nevery = \"1s\"\npayload = \"64B\"\n";

/// A system with brokers, of which so many carry so much of the fleet, and a client that offers so much.
struct World<'w> {
    carries: &'w dyn Fn(u32) -> f64,
    client: f64,
    /// Share of deliveries that come twice where there are several brokers.
    doubled: f64,
    held: HeldLimits,
    rng: StdRng,
}

impl<'w> World<'w> {
    fn new(seed: u64, carries: &'w dyn Fn(u32) -> f64) -> World<'w> {
        World {
            carries,
            client: f64::INFINITY,
            doubled: 0.0,
            held: HeldLimits {
                cores: Some(0.1),
                cores_by_quota: true,
                ..HeldLimits::default()
            },
            rng: StdRng::seed_from_u64(seed),
        }
    }

    /// A search whose interval holds the limit in 95 of 100 cases; of a client that gives way first, what was carried.
    fn search(&mut self, boxes: u32) -> Search {
        let noise = Normal::new(1.0, DEVIATION).expect("a deviation");
        let limit = (self.carries)(boxes);
        let is_client = self.client < limit;
        let found = limit.min(self.client) * noise.sample(&mut self.rng);
        let half = 1.96 * DEVIATION * found;
        let note = SearchNote::new(NoteOf::Client, "the client was the bottleneck above that");
        Search {
            system: "planted".into(),
            workload: "boxes".into(),
            axes: vec![AxisValue {
                name: "brokers".into(),
                value: boxes.to_string(),
            }],
            low: (limit > 0.0).then_some((found - half) * FLEET_PER_S),
            high: (!is_client).then_some((found + half) * FLEET_PER_S),
            confirmed: (limit > 0.0).then_some((found - half) * FLEET_PER_S),
            bound: if is_client {
                LimitedBy::Client
            } else {
                LimitedBy::System
            },
            notes: match (is_client, limit > 0.0) {
                (true, _) => vec![note],
                (_, false) => vec![SearchNote::new(NoteOf::NoneWithin, "nothing was within")],
                _ => Vec::new(),
            },
            ..Search::default()
        }
    }

    fn trial(&self, change: Variation, repeat: u32) -> Trial {
        let times = match change {
            Variation::Headroom(times) => times,
            _ => 1.0,
        };
        let trial = TrialBuilder::periodic(FLEET_PER_S * times, 10.0)
            .system("planted")
            .workload(change.workload())
            .repeat(repeat)
            .cpu(0.1, 0.1, 0.1);
        let trial = if (self.carries)(1) < times {
            trial
                .status(Status::Overloaded)
                .reason(Rule::QueueGrew, "a queue grew")
        } else {
            trial
        };
        trial.build()
    }

    fn measure(&mut self, step: &Stage) -> Results {
        let mut results = Results::default();
        for &boxes in &step.brokers {
            results.searches.push(self.search(boxes));
            let mut trial = self.trial(Variation::None, 1);
            trial
                .axes
                .clone_from(&results.searches.last().expect("one").axes);
            if boxes > 1 {
                let messages = &mut trial.messages;
                messages.duplicated = (messages.delivered as f64 * self.doubled) as u64;
            }
            trial.limits = Some(self.held.clone());
            results.trials.push(trial);
        }
        if step.brokers.is_empty() && step.kind != StageKind::Limit {
            for &change in &step.changes {
                for repeat in 1..=step.repeats {
                    results.trials.push(self.trial(change, repeat));
                }
            }
        }
        results
    }

    fn advice(&mut self, fleet: &str, room: Room) -> Advice {
        let fleet = Fleet::parse("planted", fleet).expect("a fleet");
        let candidate = Candidate {
            system: "planted".into(),
            reliability: Reliability::AtLeastOnce,
        };
        let adviser = Adviser::new(fleet, vec![candidate], Vec::new(), Vec::new());
        let mut adviser = adviser.with_room(room);
        while let Some(step) = adviser.next_step(1200.0) {
            adviser.take(step.kind, &self.measure(&step));
        }
        adviser.advice()
    }

    fn plan(&mut self) -> BoxPlan {
        let plan = self
            .advice(&fleet("machine = { cores = 0.1 }"), room(4.0))
            .boxes;
        plan.expect("one box is not enough")
    }
}

fn fleet(must: &str) -> String {
    format!("{METERS}[must]\nheadroom = 3.0\n{must}\n")
}

fn room(processors: f64) -> Room {
    Room {
        processors,
        memory_bytes: 8 << 30,
        brokerless: Vec::new(),
    }
}

fn range(plan: &BoxPlan, boxes: u32) -> Option<(f64, f64)> {
    let count = plan.counts.iter().find(|count| count.boxes == boxes)?;
    Some((count.at_least, count.at_most.unwrap_or(f64::INFINITY)))
}

fn reasons(plan: &BoxPlan) -> Vec<WhyNotTold> {
    plan.not_told.iter().map(|one| one.why).collect()
}

/// The share of one box, from a third to nearly three times the fleet.
fn share_of(seed: u64) -> f64 {
    let mut rng = StdRng::seed_from_u64(seed ^ 0xb0c5);
    10f64.powf(rng.random_range(-0.45..0.45))
}

#[test]
fn a_held_out_third_box_lies_in_its_interval_where_boxes_are_independent() {
    let (mut told, mut held, mut measured) = (0, 0, 0);
    let (mut within_reach, mut answered, mut too_few, mut spare) = (0, 0, 0, 0);
    for seed in 0..SEEDS {
        let each = share_of(seed);
        let carries = |boxes: u32| each * f64::from(boxes);
        let mut world = World::new(seed, &carries);
        let plan = world.plan();
        if let Some((low, high)) = range(&plan, 3) {
            told += 1;
            held += u64::from(low <= 3.0 * each && 3.0 * each <= high);
            // A search on three, as somebody would do it who does not believe it.
            let third = world.search(3);
            let middle = (third.low.expect("a limit") + third.high.expect("a limit")) / 2.0;
            measured += u64::from((low..=high).contains(&(middle / FLEET_PER_S)));
        }
        within_reach += u64::from(6.0 * each >= 3.0);
        if let Some(boxes) = plan.boxes {
            // More than were measured may meet what fewer do not.
            assert_eq!(reasons(&plan).contains(&WhyNotTold::Cap), boxes > 4);
            answered += u64::from(6.0 * each >= 3.0);
            too_few += u64::from(each * f64::from(boxes) < 3.0);
            // One more than are needed at the most, but for what the intervals leave open beyond four.
            spare += u64::from(f64::from(boxes) > (3.0 / each * 1.4).ceil());
        }
    }
    println!(
        "{told} told, {held} hold it, {measured} a measured one; {answered} answers, {too_few} too few, {spare} spare"
    );
    assert!(told * 100 >= SEEDS * 97, "{told} of {SEEDS}");
    assert!(held * 100 >= told * 95, "{held} of {told}");
    assert!(measured * 100 >= told * 95, "{measured} of {told}");
    // Eight are the most that is told, and searches leave up to a quarter open.
    assert!(
        answered * 100 >= within_reach * 97,
        "{answered} of {within_reach}"
    );
    assert!(too_few * 100 <= answered, "{too_few} of {answered}");
    assert!(spare * 100 <= answered, "{spare} of {answered}");
}

/// Boxes that hold each other up carry less than the plan could believe.
#[test]
fn no_more_is_claimed_of_boxes_that_share_something_than_they_carry() {
    type Sharing = Box<dyn Fn(f64, u32) -> f64>;
    let contended = |share: f64| -> Sharing {
        Box::new(move |each, boxes| {
            let boxes = f64::from(boxes);
            each * boxes / (1.0 + share * (boxes - 1.0))
        })
    };
    // A link, or a client that is not noticed, that takes so many times what one box does.
    let capped = |most: f64| -> Sharing {
        Box::new(move |each, boxes| (each * f64::from(boxes)).min(each * most))
    };
    let worlds = [
        ("contended by 2 %", contended(0.02), 8),
        ("contended by 5 %", contended(0.05), 8),
        ("contended by 10 %", contended(0.1), 8),
        ("contended by 30 %", contended(0.3), 8),
        ("capped at 1.5", capped(1.5), 8),
        ("capped at 2.2", capped(2.2), 8),
        ("capped at 2.8", capped(2.8), 8),
        ("capped at 3.2", capped(3.2), 4),
        ("capped at 3.8", capped(3.8), 4),
    ];
    for (name, sharing, furthest) in &worlds {
        let (mut third, mut any, mut enough, mut refused) = (0, 0, 0, 0);
        for seed in 0..SEEDS {
            let each = share_of(seed);
            let carries = |boxes: u32| sharing(each, boxes);
            let plan = World::new(seed, &carries).plan();
            let exceeds =
                |boxes: u32| range(&plan, boxes).is_some_and(|(low, _)| low > carries(boxes));
            third += u64::from(exceeds(3));
            any += u64::from((5..=*furthest).any(exceeds));
            enough += u64::from(
                plan.boxes
                    .is_some_and(|boxes| boxes <= *furthest && carries(boxes) < 3.0),
            );
            refused += u64::from(reasons(&plan).contains(&WhyNotTold::NotIndependent));
        }
        println!(
            "{name}: 3 too much {third}, 5 to 8 {any}, too few boxes {enough}, refused {refused}"
        );
        assert!(third * 100 <= SEEDS, "{name}: {third} of {SEEDS}");
        assert!(any * 100 <= SEEDS, "{name}: {any} of {SEEDS}");
        assert!(enough * 100 <= SEEDS, "{name}: {enough} of {SEEDS}");
        if name.contains("1.5") {
            assert!(refused * 100 >= SEEDS * 99, "{refused} of {SEEDS}");
        }
    }
}

#[test]
fn where_the_client_gives_way_nothing_follows() {
    for seed in 0..SEEDS {
        let each = share_of(seed);
        let carries = |boxes: u32| each * f64::from(boxes);
        let mut world = World::new(seed, &carries);
        world.client = 1.5 * each;
        let plan = world.plan();
        assert!(
            reasons(&plan).contains(&WhyNotTold::ClientBound),
            "{plan:?}"
        );
        for count in &plan.counts {
            assert_eq!(count.known_by, KnownBy::Measured, "{plan:?}");
            if count.boxes > 1 {
                assert_eq!(count.at_most, None, "{plan:?}");
            }
        }
        // At least so much was carried, whoever gave way.
        let enough = plan.boxes.is_some_and(|boxes| carries(boxes) < 3.0 * 0.85);
        assert!(!enough, "{plan:?}");
    }
}

/// Three kinds, of which two send half of what one box carries: their share of a box falls with the number of boxes.
#[test]
fn other_kinds_of_devices_take_their_share() {
    let text = format!(
        "{METERS}[[devices]]\nname = \"doors\"\ncount = 10\nevery = \"1s\"\npayload = \"64B\"\n[must]\nheadroom = 3.0\n\
         machine = {{ cores = 0.1 }}\n"
    );
    let others = 3.0 * 10.0 / FLEET_PER_S;
    let (mut told, mut held, mut too_few) = (0, 0, 0);
    for seed in 0..SEEDS {
        let each = share_of(seed);
        let carries = |boxes: u32| (each * f64::from(boxes) - others).max(0.0);
        let mut world = World::new(seed, &carries);
        let Some(plan) = world.advice(&text, room(4.0)).boxes else {
            continue;
        };
        if let Some((low, high)) = range(&plan, 3) {
            told += 1;
            held += u64::from(low <= carries(3) && carries(3) <= high);
        }
        too_few += u64::from(plan.boxes.is_some_and(|boxes| carries(boxes) < 3.0));
    }
    println!("{told} told, {held} hold it, {too_few} too few");
    assert!(told * 100 >= SEEDS * 90, "{told} of {SEEDS}");
    assert!(held * 100 >= told * 95, "{held} of {told}");
    assert!(too_few * 100 <= SEEDS, "{too_few} of {SEEDS}");
}

#[test]
fn brokers_that_are_no_boxes_are_refused_by_name() {
    let linear = |boxes: u32| 1.5 * f64::from(boxes);
    let mut world = World::new(1, &linear);
    world.doubled = 0.5;
    let plan = world.plan();
    assert!(reasons(&plan).contains(&WhyNotTold::Linked), "{plan:?}");
    assert_eq!((plan.boxes, plan.counts.len()), (None, 0));

    let mut world = World::new(1, &linear);
    world.held.cores_by_quota = false;
    let plan = world.plan();
    assert!(reasons(&plan).contains(&WhyNotTold::NotHeld), "{plan:?}");
    assert_eq!((plan.boxes, plan.counts.len()), (None, 0));

    let mut world = World::new(1, &linear);
    world.held.memory_bytes = Some(1 << 28);
    assert!(reasons(&world.plan()).contains(&WhyNotTold::NotHeld));

    // The size is held where the client has the same processors.
    let mut world = World::new(1, &linear);
    world.held.not_held = vec!["the client off the system's processors".into()];
    assert!(!reasons(&world.plan()).contains(&WhyNotTold::NotHeld));
}

#[test]
fn boxes_that_cannot_be_had_here_are_refused_by_name() {
    let linear = |boxes: u32| 1.5 * f64::from(boxes);
    let refused = |must: &str, room: Room| {
        let advice = World::new(1, &linear).advice(&fleet(must), room);
        let plan = advice.boxes.expect("asked for");
        assert_eq!(plan.boxes, None);
        assert_eq!(plan.not_told.len(), 1, "{plan:?}");
        plan.not_told[0].clone()
    };
    let none = refused("", room(2.0));
    assert_eq!(none.why, WhyNotTold::NoSize);
    let large = refused("machine = { cores = 1 }", room(2.0));
    assert_eq!(large.why, WhyNotTold::TooLarge);
    assert!(
        large.because.contains("2 boxes of 1 core do not fit"),
        "{large:?}"
    );
    let memory = refused("machine = { cores = 0.1, memory = \"5000MiB\" }", room(2.0));
    assert_eq!(memory.why, WhyNotTold::TooLarge);
    let library = Room {
        brokerless: vec!["planted".into()],
        ..room(2.0)
    };
    let library = refused("machine = { cores = 0.1 }", library);
    assert_eq!(library.why, WhyNotTold::NoBroker);

    // Of two that fit no four follow without saying so.
    let text = fleet("machine = { cores = 0.6 }");
    let advice = World::new(1, &linear).advice(&text, room(2.0));
    let plan = advice.boxes.expect("asked for");
    assert!(reasons(&plan).contains(&WhyNotTold::TooLarge), "{plan:?}");
    let measured = plan
        .counts
        .iter()
        .filter(|count| count.known_by == KnownBy::Measured);
    assert_eq!(
        measured.map(|count| count.boxes).collect::<Vec<_>>(),
        [1, 2]
    );
}

#[test]
fn nobody_counts_boxes_where_one_is_enough_unless_asked() {
    let linear = |boxes: u32| 8.0 * f64::from(boxes);
    let size = "machine = { cores = 0.1 }";
    let advice = World::new(1, &linear).advice(&fleet(size), room(4.0));
    assert_eq!((advice.choices.len(), advice.boxes), (1, None));
    let asked = fleet(&format!("{size}\nboxes = true"));
    let advice = World::new(1, &linear).advice(&asked, room(4.0));
    assert_eq!(advice.boxes.expect("asked for").boxes, Some(1));
    let single = |boxes: u32| 1.5 * f64::from(boxes);
    let unwanted = fleet(&format!("{size}\nboxes = false"));
    let advice = World::new(1, &single).advice(&unwanted, room(4.0));
    assert_eq!(advice.boxes, None);
}

#[test]
fn the_screen_says_how_many_boxes_and_how_it_is_known() {
    let linear = |boxes: u32| 1.2 * f64::from(boxes);
    let advice = World::new(3, &linear).advice(&fleet("machine = { cores = 0.1 }"), room(2.0));
    let screen = render(&advice, false);
    assert!(screen.lines().count() <= 24, "{screen}");
    let flat = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "none carries it on one box, 3 boxes do",
        "Boxes 3 boxes of 0.1 cores with planted carry 3 times the fleet: 3",
        "(follows from the others)",
        "measured side by side: 1 carries",
        "shared here: one client for all devices and applications, which has 1.6 of 2 processors beside 4 boxes",
    ] {
        assert!(flat.contains(words), "{words}: {screen}");
    }
    let whole = render(&advice, true);
    assert!(whole.contains("other hardware"), "{whole}");
}

#[test]
fn boxes_become_a_study() {
    let text = "name = \"site\"\n[[devices]]\nname = \"meters\"\ncount = 50\nevery = \"1s\"\npayload = \"64B\"\n\
                commands = { every = \"1s\" }\noffline = { for = \"1h\" }\n[must]\nmachine = { cores = 0.1 }\nboxes = true\n";
    let fleet = Fleet::parse("site.toml", text).expect("a fleet");
    let candidate = Candidate {
        system: "mosquitto".into(),
        reliability: Reliability::AtLeastOnce,
    };
    let step = Stage::of_boxes(&fleet, &[candidate], &room(2.0)).expect("they fit");
    insta::assert_snapshot!(fleet.study(&step));
}
