//! Publishers that their own window holds back, over a system with room.

use super::thresholds;

use pubgauge_figures::model::{Evidence, PublisherWindow, Reason, Rule, Trial};
use pubgauge_figures::network::full_link;
use pubgauge_quantities::shown;

use super::client::Load;

/// A window that was the limit of a trial.
pub(super) struct WindowFull<'a> {
    window: &'a PublisherWindow,
    /// The usual and the shortest time of an acknowledgement, ns.
    usual: f64,
    fastest: f64,
    blocked: f64,
    publishers: u64,
}

impl WindowFull<'_> {
    /// The window that held publishers back while nothing waited in the system. `None` where there is no window, the
    /// publishers had room in it, or the system, a link or the client may have been the limit.
    ///
    /// A system at its end has a queue, and an acknowledgement then takes longer than where nothing waits; the shortest one
    /// of the whole trial, sentinels included, says how long that is. A ping-pong has one message under way by design.
    pub fn find<'a>(trial: &'a Trial, client: &Load) -> Option<WindowFull<'a>> {
        let window = trial.publisher_window.as_ref()?;
        let fastest = window.fastest_acknowledgement_ns? as f64;
        let usual = trial.messages.acknowledgement_ns?.p50? as f64;
        let blocked = trial.publishers_blocked?;
        let publishers = u64::from(trial.workload.publishers.max(1));
        let under_way = trial.messages.published_msgs_per_s * usual / 1e9;
        let is_full = blocked >= thresholds::WINDOW_BLOCKED
            && under_way >= thresholds::WINDOW_USED * (window.granted * publishers) as f64;
        let system_had_room = usual <= thresholds::WINDOW_WAIT * fastest
            && trial
                .system_busiest_thread_cpu
                .is_none_or(|cpu| cpu < thresholds::SYSTEM_BUSY_CORES)
            && full_link(trial).is_none();
        let client_had_time = !client.publishers_short_of_time()
            && !client.subscribers_full
            && client.stalled.is_none();
        let alike = trial.flows.iter().all(|flow| flow.settings.is_none());
        let one_way = trial.shortfall.questions.is_none();
        let found = WindowFull {
            window,
            usual,
            fastest,
            blocked,
            publishers,
        };
        (is_full && system_had_room && client_had_time && alike && one_way).then_some(found)
    }

    /// The reason, with what another load or more would take.
    pub fn reason(&self, trial: &Trial) -> Reason {
        let publishers = match self.publishers {
            1 => "1 publisher".to_owned(),
            n => format!("{n} publishers"),
        };
        let each = 1e9 / self.usual;
        let most = self.window.granted as f64 * self.publishers as f64 * each;
        let wanted = (trial.messages.offered_msgs_per_s / each / self.publishers as f64).ceil();
        let setting = &self.window.setting;
        let more = match (trial.workload.flat_out, self.window.is_granted()) {
            (true, false) => format!("a larger {setting} would show more"),
            (true, true) => "a server that grants more would show more".to_owned(),
            (false, false) => format!(
                "{} want {setting} = {wanted:.0} or more",
                shown::rate(trial.messages.offered_msgs_per_s)
            ),
            (false, true) => format!(
                "{} want a server that grants {wanted:.0} or more",
                shown::rate(trial.messages.offered_msgs_per_s)
            ),
        };
        let text = format!(
            "{}: an acknowledgement takes {}, and {} where nothing waits, hence at most {} from {publishers}, which the window \
             held back for {} of the time; {more}",
            self.window,
            shown::time(self.usual),
            shown::time(self.fastest),
            shown::rate(most),
            shown::share(self.blocked),
        );
        Reason::new(Rule::WindowFull, text)
            .count(Evidence::Window, self.window.granted)
            .limited(
                Evidence::BlockedShare,
                self.blocked,
                thresholds::WINDOW_BLOCKED,
            )
            .limited(
                Evidence::Acknowledgement,
                self.usual,
                thresholds::WINDOW_WAIT * self.fastest,
            )
            .figure(Evidence::MostRate, most)
    }
}
