//! The rules, and what those that applied found.

use pubgauge_figures::model::{Evidence, Reason, Rule, Status, Verdict};

/// Whether it says that the system failed under its load, and not merely that nothing was measured of it.
fn is_failure(rule: Rule) -> bool {
    use Rule::*;
    matches!(
        rule,
        SystemDied | ConnectionsLost | Corrupt | WrongTopic | NothingTaken | NothingArrived
    )
}

/// Whether the reasons that two rules give cannot both be true.
#[cfg(test)]
pub(super) fn contradicts(one: Rule, other: Rule) -> bool {
    use Rule::*;
    // One says that the system could have taken more, the other that it could not.
    let took_all = [PublisherFull];
    let at_its_end = [
        QueueGrew,
        SubscriberBehind,
        UnderWay,
        Unsent,
        Refused,
        Lost,
        NothingTaken,
    ];
    // One says that the load was carried or not, the other that this is not known.
    let not_known = [TooShort];
    let known = [QueueGrew, SubscriberBehind, UnderWay, Unsent, Refused];
    // One says that the client had time left, the other that it had none.
    let client_had_time = [
        Unsent,
        SystemSilent,
        QueueGrew,
        SubscriberBehind,
        UnderWay,
        Lost,
    ];
    let client_had_none = [
        ClientStalled,
        QuotaFull,
        TimeStolen,
        UnsentByClient,
        LostByClient,
    ];
    let between = |a: &[Rule], b: &[Rule]| {
        a.contains(&one) && b.contains(&other) || a.contains(&other) && b.contains(&one)
    };
    between(&took_all, &at_its_end)
        || between(&not_known, &known)
        || between(&client_had_time, &client_had_none)
}

/// Rules that applied so far.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) found: Vec<(Status, Reason)>,
    /// Seconds for which the measurement would have had to last.
    pub(super) needs_s: Option<f64>,
}

impl Findings {
    pub(super) fn add(&mut self, status: Status, reason: Reason) {
        self.found.push((status, reason));
    }

    /// Says that the measurement was too short, and would have to last for `needs_s` seconds.
    pub(super) fn add_too_short(&mut self, needs_s: f64, why: impl Into<String>) {
        let reason = Reason::new(Rule::TooShort, why).figure(Evidence::Needed, needs_s);
        self.add(Status::TooShort, reason);
        self.needs_s = Some(needs_s);
    }

    pub(super) fn blame_client(&mut self, reason: Reason) {
        self.add(Status::ClientBound, reason);
    }

    /// Turns what the system is blamed for into what says nothing of it: what it did not carry, or not steadily.
    pub(super) fn excuse_system(&mut self) {
        for (status, _) in &mut self.found {
            if matches!(
                status,
                Status::Overloaded | Status::Unsteady | Status::TooShort
            ) {
                *status = Status::ClientBound;
            }
        }
        self.needs_s = None;
    }

    pub(super) fn has(&self, rule: Rule) -> bool {
        self.found.iter().any(|(_, found)| found.rule == rule)
    }

    /// Whether a rule of one of these statuses applied.
    pub(super) fn have_any(&self, statuses: &[Status]) -> bool {
        let mut found = self.found.iter();
        found.any(|(status, _)| statuses.contains(status))
    }

    /// Whether the trial is not examined further because it did not run as planned.
    pub(super) fn ends_here(&self) -> bool {
        self.found
            .iter()
            .any(|(status, found)| *status == Status::Broken || found.rule == Rule::NotRun)
    }

    /// Whether a trial that is broken is so because the system failed. Where it did not come to its end, only the end of
    /// the system itself says so, and of its connections once the measurement had begun.
    pub(super) fn show_failure(&self, began: bool) -> bool {
        let cut_off = self.has(Rule::NotRun) || self.has(Rule::Unconnected);
        self.found.iter().any(|(status, found)| {
            let counts = match found.rule {
                Rule::SystemDied => true,
                Rule::ConnectionsLost => !cut_off || began,
                _ => !cut_off,
            };
            *status == Status::Broken && is_failure(found.rule) && counts
        })
    }

    /// The reasons, worst status first; within a status in the order in which they were found.
    pub(super) fn verdict(mut self) -> Verdict {
        self.found
            .sort_by_key(|(status, _)| std::cmp::Reverse(*status));
        Verdict {
            status: self
                .found
                .first()
                .map_or(Status::Valid, |(status, _)| *status),
            needs_s: self.needs_s,
            reasons: self.found.into_iter().map(|(_, reason)| reason).collect(),
            ..Verdict::default()
        }
    }
}
