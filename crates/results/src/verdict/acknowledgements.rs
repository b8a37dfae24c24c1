//! Messages that asked for acknowledgement and were rejected, and those that were never acknowledged.

use pubgauge_figures::model::{Evidence, Reason, Rejection, Rule, Status, Trial};

use super::{Findings, Judged, percent, thresholds};

/// Judges refusals and missing acknowledgements, part by part.
pub(super) fn judge(trial: &Trial, findings: &mut Findings) {
    for part in Judged::parts_of(trial) {
        if part.losses_allowed(trial) {
            continue;
        }
        if part.messages.refused > 0 {
            refused(&part, findings);
        }
        // A publisher that the system stopped reading has deliveries under way.
        if part.shortfall.unacknowledged > 0 && part.shortfall.under_way == 0 {
            unacknowledged(trial, &part, findings);
        }
    }
}

fn refused(part: &Judged<'_>, findings: &mut Findings) {
    let (of, refused, offered) = (&part.of, part.messages.refused, part.messages.offered);
    let share = percent(refused, offered);
    let asked = !part.settings.may_lose() || !part.shortfall.rejections.is_empty();
    let reason = if asked {
        let text = format!(
            "{of}{refused} of {offered} messages that asked for acknowledgement were rejected ({share}): {}",
            by_whom(&part.shortfall.rejections, refused)
        );
        Reason::new(Rule::Refused, text).count(Evidence::Refused, refused)
    } else if part.share(refused) > thresholds::UNSENT_SHARE {
        let text = format!("{of}{refused} of {offered} messages were refused ({share})");
        let limit = thresholds::UNSENT_SHARE;
        Reason::new(Rule::Refused, text).limited(Evidence::RefusedShare, part.share(refused), limit)
    } else {
        return;
    };
    let status = if asked {
        Status::Lossy
    } else {
        Status::Overloaded
    };
    findings.add(status, reason);
}

/// The codes of the rejections with their counts, and what the client's own library refused.
fn by_whom(rejections: &[Rejection], refused: u64) -> String {
    let by_code = |rejection: &Rejection| {
        let name = match rejection.name.as_str() {
            "" => format!("code {}", rejection.code),
            name => name.to_owned(),
        };
        format!("{} by the system, {name}", rejection.messages)
    };
    let by_system: u64 = rejections.iter().map(|rejection| rejection.messages).sum();
    let by_client = refused.saturating_sub(by_system);
    let by_client =
        (by_client > 0).then(|| format!("{by_client} by the client's side before they were sent"));
    let all: Vec<String> = rejections.iter().map(by_code).chain(by_client).collect();
    all.join("; ")
}

fn unacknowledged(trial: &Trial, part: &Judged<'_>, findings: &mut Findings) {
    let (of, missing, published) = (
        &part.of,
        part.shortfall.unacknowledged,
        part.messages.published,
    );
    let share = percent(missing, published);
    let seconds = trial.drain.seconds;
    let (status, end) = if trial.drain.cut_short {
        let end = format!("not yet acknowledged when the drain was cut short after {seconds:.1} s");
        (Status::Overloaded, end)
    } else {
        let end = format!(
            "never acknowledged, though all that was to come had come when the drain ended after {seconds:.1} s"
        );
        (Status::Lossy, end)
    };
    let text =
        format!("{of}{missing} of {published} messages that the system took ({share}) were {end}");
    let reason = Reason::new(Rule::Unacknowledged, text)
        .count(Evidence::Unacknowledged, missing)
        .count(Evidence::Published, published);
    findings.add(status, reason);
}
