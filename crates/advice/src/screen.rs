//! Advice as a screen of text.

use pubgauge_quantities::shown::so_many;
use pubgauge_quantities::text::fill;

use crate::adviser::MOST_CHOICES;
use crate::answer::{Advice, LeftOut, Recommendation, WhyOut};
use crate::boxes::{BoxPlan, WhyNotTold};

const WIDTH: usize = 80;

/// The advice in lines of 80 columns; `is_whole`: every system that is left out with its reason in full, and all settings.
pub fn render(advice: &Advice, is_whole: bool) -> String {
    let mut out = headline(advice);
    out.push('\n');
    if !advice.choices.is_empty() {
        out.push_str(&table(advice, is_whole));
        out.push('\n');
    }
    let mut say = |label: &str, text: &str| {
        let lead = format!(" {label:<11}");
        out.push_str(&fill(&lead, "            ", text, WIDTH));
    };
    if let Some(best) = advice.choices.first() {
        let alike: Vec<&str> = (advice.choices.iter())
            .take_while(|choice| choice.rank == best.rank)
            .map(|choice| choice.system.as_str())
            .collect();
        if alike.len() > 1 {
            let text = format!("{}: nothing measured tells them apart", alike.join(", "));
            say("Same rank", &text);
        }
        for choice in advice
            .choices
            .iter()
            .take(if is_whole { MOST_CHOICES } else { 1 })
        {
            say("Settings", &settings(choice));
        }
    }
    for (systems, words) in advice.evidence_in_words() {
        say("Evidence", &format!("{systems}: {words}"));
    }
    for (change, carried) in advice.others_in_words() {
        say("Otherwise", &format!("{change}: {carried}"));
    }
    if let Some(plan) = &advice.boxes {
        for (label, text) in boxes(plan, is_whole) {
            say(label, &text);
        }
    }
    for one in &advice.undecided {
        say("Not told", &format!("{}: {}", one.system, one.because));
    }
    if is_whole {
        for out in &advice.left_out {
            say(
                "Left out",
                &format!("{}: {}: {}", out.system, out.asked, out.because),
            );
        }
    } else {
        for line in left_out_briefly(&advice.left_out) {
            say("Left out", &line);
        }
    }
    for remark in &advice.remarks {
        say("Note", remark);
    }
    if is_whole {
        for one in &advice.not_counted {
            say("Uncounted", &one.describe());
        }
    } else if !advice.not_counted.is_empty() {
        let stored = so_many(advice.not_counted.len() as u64, "stored load");
        say("Note", &format!("{stored} not counted: --verbose says why"));
    }
    if !advice.not_measured.is_empty() {
        say("Unmeasured", &advice.not_measured.join("; "));
    }
    out
}

fn headline(advice: &Advice) -> String {
    let text = format!("{} · {}", advice.fleet, advice.in_short());
    fill("", "  ", &text, WIDTH)
}

fn table(advice: &Advice, is_whole: bool) -> String {
    let most = if is_whole { usize::MAX } else { MOST_CHOICES };
    let named: Vec<&Recommendation> = advice.choices.iter().take(most).collect();
    let widest = named
        .iter()
        .map(|choice| choice.system.len())
        .max()
        .unwrap_or(0)
        .max(6);
    let mut out = format!(
        "  rank  {:widest$}  {:<15}  {:>8}  {:>14}  {:>8}  runs\n",
        "system", "times the fleet", "p99", "cost a message", "memory"
    );
    for choice in named {
        let times = choice.headroom_in_words();
        let (p99, cost) = (choice.p99_in_words(), choice.cost_in_words());
        let memory = choice.memory_in_words();
        out.push_str(&format!(
            "  {:<4}  {:widest$}  {times:<15}  {p99:>8}  {cost:>14}  {memory:>8}  {:>4}\n",
            choice.rank, choice.system, choice.repeats
        ));
    }
    let more = advice.choices.len().saturating_sub(most);
    if more > 0 {
        out.push_str(&format!("  and {more} more, below: --verbose\n"));
    }
    out
}

/// The settings of a choice in a line, what they are in the system's own terms, and the files of its server.
fn settings(choice: &Recommendation) -> String {
    let keys: Vec<&str> = choice.settings.lines().skip(1).collect();
    let server = match &choice.server_files[..] {
        [] => String::new(),
        files => format!("; server: {}", files.join(", ")),
    };
    let client = choice.client_in_words();
    format!("{}: {} ({client}){server}", choice.system, keys.join(", "))
}

/// How many boxes, how they were measured, and which of it cannot be told.
fn boxes(plan: &BoxPlan, is_whole: bool) -> Vec<(&'static str, String)> {
    let mut lines = vec![("Boxes", plan.answer_in_words())];
    let measured = plan.measured_in_words();
    if !measured.is_empty() {
        lines.push(("", format!("measured side by side: {measured}")));
        lines.push(("", format!("shared here: {}", plan.shared.join("; "))));
    }
    let not_told = plan.not_told.iter();
    let not_told = not_told.filter(|one| {
        is_whole
            || one.why.is_obstacle()
            || one.why == WhyNotTold::BeyondTwice && plan.boxes.is_none()
    });
    lines.extend(not_told.map(|one| ("", format!("not told: {}", one.because))));
    if is_whole {
        lines.extend(plan.remarks.iter().map(|remark| ("", remark.clone())));
    }
    lines
}

/// Each reason once, with the systems that it is about.
fn left_out_briefly(left_out: &[LeftOut]) -> Vec<String> {
    let each = left_out.iter();
    let each = each.map(|out| ((out.why, out.asked.as_str()), out.system.as_str()));
    let grouped = pubgauge_quantities::lists::grouped(each).into_iter();
    let lines = grouped.map(|((why, asked), systems)| {
        let why = match why {
            WhyOut::Lacks => format!("without {asked}"),
            WhyOut::Breaks => format!("breaks {asked}"),
            WhyOut::FleetNotCarried | WhyOut::HeadroomNotCarried => {
                format!("does not carry {asked}")
            }
        };
        format!("{why}: {}", systems.join(", "))
    });
    lines.collect()
}
