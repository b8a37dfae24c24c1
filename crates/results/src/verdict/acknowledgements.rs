//! Messages that asked for acknowledgement and were rejected, and those that were never acknowledged.

use pubgauge_figures::Shortfall;
use pubgauge_figures::model::{Evidence, Reason, Rejection, Rule, SizeLimit, Status, Trial};

use super::{Findings, Judged, percent, thresholds};

/// Judges refusals and missing acknowledgements, part by part.
pub(super) fn judge(trial: &Trial, findings: &mut Findings) {
    for part in Judged::parts_of(trial) {
        if part.losses_allowed(trial) {
            continue;
        }
        if part.messages.refused > 0 {
            refused(trial, &part, findings);
        }
        // A publisher that the system stopped reading has deliveries under way.
        if part.shortfall.unacknowledged > 0 && part.shortfall.under_way == 0 {
            unacknowledged(trial, &part, findings);
        }
    }
}

fn refused(trial: &Trial, part: &Judged<'_>, findings: &mut Findings) {
    let (of, refused, offered) = (&part.of, part.messages.refused, part.messages.offered);
    let share = percent(refused, offered);
    let asked = !part.settings.may_lose() || !part.shortfall.rejections.is_empty();
    let reason = if asked {
        let text = format!(
            "{of}{refused} of {offered} messages that asked for acknowledgement were rejected ({share}): {}",
            by_whom(trial, part.shortfall, refused)
        );
        Reason::new(Rule::Refused, text).count(Evidence::Refused, refused)
    } else if part.share(refused) > thresholds::UNSENT_SHARE {
        let why = by_whom(trial, part.shortfall, refused);
        let text = format!("{of}{refused} of {offered} messages were refused ({share}): {why}");
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
pub(super) fn by_whom(trial: &Trial, shortfall: &Shortfall, refused: u64) -> String {
    let rejections = &shortfall.rejections;
    let by_code = |rejection: &Rejection| {
        let name = match rejection.name.as_str() {
            "" => format!("code {}", rejection.code),
            name => name.to_owned(),
        };
        format!("{} by the system, {name}", rejection.messages)
    };
    let by_system: u64 = rejections.iter().map(|rejection| rejection.messages).sum();
    let &Shortfall {
        too_large, dropped, ..
    } = shortfall;
    let others = refused.saturating_sub(by_system + too_large + dropped);
    let of_client = [
        (too_large, self::too_large(trial)),
        (
            dropped,
            "dropped before a full queue of the client's side".to_owned(),
        ),
        (
            others,
            "by the client's side before they were sent".to_owned(),
        ),
    ];
    let of_client = of_client.iter().filter(|(count, _)| *count > 0);
    let of_client = of_client.map(|(count, why)| format!("{count} {why}"));
    let all: Vec<String> = rejections.iter().map(by_code).chain(of_client).collect();
    all.join("; ")
}

/// That messages are larger than the system takes, with the limit that it announced.
pub(super) fn too_large(trial: &Trial) -> String {
    let limit = trial.size_limit.as_ref();
    let limit = limit.map_or(String::new(), |SizeLimit { bytes, term }| {
        format!(" (its {term} is {bytes} B)")
    });
    format!("larger than the system takes{limit}")
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
