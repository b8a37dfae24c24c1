//! The protocol's promises of each delivery: its topic, its quality of service and its order.

use pubgauge_figures::model::{Evidence, Reason, Rule, Status, Trial};

use super::findings::Findings;

/// A delivery on another topic than its message was published on.
pub(super) fn topics(trial: &Trial, findings: &mut Findings) {
    let misdirected = trial.odd.misdirected;
    if misdirected > 0 {
        let text = format!(
            "{misdirected} of {} deliveries came on another topic than their message was published on",
            trial.messages.delivered
        );
        let reason = Reason::new(Rule::WrongTopic, text).count(Evidence::Misdirected, misdirected);
        findings.add(Status::Broken, reason);
    }
}

/// Deliveries with a lower quality of service than the smaller of what publisher and subscriber asked for.
pub(super) fn quality(trial: &Trial, findings: &mut Findings) {
    let lowered = trial.odd.lowered;
    if lowered > 0 {
        let text = format!(
            "{lowered} of {} deliveries came with a lower quality of service than publisher and subscriber asked for",
            trial.messages.delivered
        );
        let reason = Reason::new(Rule::LowerQuality, text).count(Evidence::Lowered, lowered);
        findings.add(Status::Lossy, reason);
    }
}

/// Deliveries out of order where the system promises order. Members of a group overtake each other, and what was sent
/// again on a new connection comes late: neither breaks a promise.
pub(super) fn order(trial: &Trial, findings: &mut Findings) {
    if !trial.circumstances.order_promised
        || trial.circumstances.losses_allowed
        || trial.connections.lost > 0
    {
        return;
    }
    for flow in &trial.flows {
        let shared = trial.groups.iter().any(|group| group.flow == flow.name);
        if flow.messages.reordered == 0 || shared {
            continue;
        }
        let of = match trial.flows.len() {
            1 => String::new(),
            _ => format!("flow `{}`: ", flow.name),
        };
        let text = format!(
            "{of}{} of {} deliveries were overtaken by a later message of the same publisher and topic, and the system \
             promises their order",
            flow.messages.reordered, flow.messages.delivered
        );
        let reason = Reason::new(Rule::OutOfOrder, text);
        let reason = reason.count(Evidence::Reordered, flow.messages.reordered);
        findings.add(
            Status::Lossy,
            reason.count(Evidence::Delivered, flow.messages.delivered),
        );
    }
}
