//! The conductor's links to workers: the commands it sends and the reports it takes in.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use pubgauge_driver::Nanos;
use pubgauge_workload::Until;

use super::checked::{check, most_of_record};
use super::handle::WorkerHandle;
use super::{Conductor, Observer, Phase};
use crate::assignment::Role;
use crate::live::{Live, ThreadOf};
use crate::record::{TrialEnd, TrialRecord};
use crate::reports::{Command, Positions, Report, Sent};

/// How long the conductor waits for reports before it looks at the time again.
const GLANCE: Duration = Duration::from_millis(2);
/// Pause between looks while the workers run by the clock alone: nothing then depends on when the conductor looks, and each look
/// takes processor time from client and system.
const STEADY_GLANCE: Duration = Duration::from_millis(10);
/// A worker that has reported nothing for this long hangs.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);
/// Between two looks at the inbox no more than this counts as silence: a conductor that slept longer
/// took in no reports either. One look lasts no longer than this.
const LONGEST_LOOK: Duration = Duration::from_millis(100);
/// A window is given up when it was full for more than this many times the longest silence of the
/// trial.
const PATIENCE_FACTOR: Nanos = 3;

impl Conductor<'_> {
    /// Tells the workers of one side, or all.
    pub(super) fn command(&mut self, role: Option<Role>, command: &Command) {
        for handle in &mut self.workers {
            if role.is_none_or(|role| role == handle.role) {
                handle.send(command.clone());
            }
        }
    }

    /// Whether something holds of every worker that is not gone.
    pub(super) fn all_workers(&self, holds: impl Fn(&WorkerHandle) -> bool) -> bool {
        self.workers
            .iter()
            .all(|handle| handle.is_over() || holds(handle))
    }

    /// Waits for the workers' reports for a moment and takes them in.
    pub(super) fn pass_time(
        &mut self,
        observer: &mut dyn Observer,
        stop: &AtomicBool,
    ) -> Result<(), TrialEnd> {
        self.hear();
        self.look(observer, stop)
    }

    /// Shows the observer where the trial is, and finds out whether it can go on.
    pub(super) fn look(
        &mut self,
        observer: &mut dyn Observer,
        stop: &AtomicBool,
    ) -> Result<(), TrialEnd> {
        if stop.load(Relaxed) {
            return Err(TrialEnd::Interrupted);
        }
        let trouble = observer.tick(self.phase, &self.live, self.spec.clock.now());
        let trouble = trouble
            .or_else(|| self.failure.take())
            .or_else(|| self.silent());
        if let Some(why) = trouble.or_else(|| self.all_lost()) {
            return Err(match self.phase {
                Phase::Connect | Phase::Prove => TrialEnd::NotReady(why),
                _ => TrialEnd::Aborted(why),
            });
        }
        Ok(())
    }

    /// A worker that hangs.
    fn silent(&self) -> Option<String> {
        let inline = self.spec.place.is_inline();
        let hangs =
            |handle: &WorkerHandle| !inline && !handle.is_over() && handle.silent > SIGN_OF_LIFE;
        let number = self.workers.iter().position(hangs)?;
        Some(format!(
            "{} was not heard of for {} s",
            self.named(number),
            SIGN_OF_LIFE.as_secs()
        ))
    }

    /// A worker, with its host where that is another.
    fn named(&self, number: usize) -> String {
        let link = self
            .workers
            .get(number)
            .and_then(|handle| handle.link.as_ref());
        match link.and_then(|link| link.host()) {
            Some(host) => format!("worker {number} ({host})"),
            None => format!("worker {number}"),
        }
    }

    /// How long it waits for reports now: no longer than to the end of the phase, where that is known.
    fn glance(&self) -> Duration {
        let phases = &self.spec.brief.workload.phases;
        let (until, end) = match (self.phase, self.table) {
            (Phase::WarmUp, Some(table)) => (phases.warm_up, table.measure),
            (Phase::Measure, Some(table)) => (phases.measure, table.end),
            _ => return GLANCE,
        };
        // Workers on other hosts are heard as their links are asked.
        let glance = if matches!(until, Until::Time(_)) && self.spec.place.is_here() {
            STEADY_GLANCE
        } else {
            GLANCE
        };
        glance.min(Duration::from_nanos(
            end.saturating_sub(self.spec.clock.now()),
        ))
    }

    fn hear(&mut self) {
        let inline = self.spec.place.is_inline();
        let mut wait = self.glance();
        if inline {
            self.workers
                .iter_mut()
                .filter_map(|handle| handle.link.as_mut())
                .for_each(|link| link.step());
            wait = Duration::ZERO;
        }
        let now = Instant::now();
        let listened = (now - self.looked).min(LONGEST_LOOK);
        self.looked = now;
        for handle in &mut self.workers {
            handle.silent += listened;
        }
        let until = now + wait;
        let mut given_up = Vec::new();
        let mut passed = false;
        let mut counted = false;
        // Workers that report faster than the conductor reads must not hold up the trial's phases.
        while inline || until.elapsed() < LONGEST_LOOK {
            let left = until.saturating_duration_since(Instant::now());
            let Sent { worker, report, .. } = match self.inbox.recv_timeout(left) {
                Ok(sent) => sent,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            };
            if let Err(why) = check(&report, &self.spec.brief) {
                let named = self.named(worker as usize);
                self.give_up_on(worker as usize, format!("{named} makes no sense: {why}"));
                continue;
            }
            counted |= matches!(report, Report::Counters(_));
            if let Report::Passed(flow, tokens) = report {
                if let Some(Some(window)) = self.tokens.get_mut(flow as usize) {
                    window.give_back(tokens);
                }
                if let Some(Some(gate)) = self.burst_gates.get_mut(flow as usize) {
                    gate.passed(tokens, self.spec.clock.now());
                }
                self.next_burst(flow as usize);
                passed = true;
                // At once: a worker that waits for them sends nothing meanwhile.
                self.hand_out();
                continue;
            }
            if let Err(why) = self.take(worker, report, &mut given_up) {
                let named = self.named(worker as usize);
                self.give_up_on(worker as usize, format!("{named} makes no sense: {why}"));
            }
        }
        if counted || passed {
            let threads = std::mem::take(&mut self.live.threads);
            let counters = self.workers.iter().map(|handle| &handle.counters);
            self.live = Live {
                threads,
                latency: self.collected.newest,
                ..Live::add_up(counters, self.apart.repeated_deliveries())
            };
            self.apart.correct(&mut self.live);
        }
        for positions in given_up {
            self.command(None, &Command::GiveUp(positions));
        }
        if !inline {
            // Places that pass on the reports of others.
            self.workers
                .iter_mut()
                .filter_map(|handle| handle.link.as_mut())
                .for_each(|link| link.step());
        }
    }

    /// Ends the link to a worker.
    fn give_up_on(&mut self, worker: usize, why: String) {
        if let Some(handle) = self.workers.get_mut(worker) {
            handle.gone = true;
            handle.link = None;
        }
        self.fail(why.into());
    }

    /// Takes in a report.
    ///
    /// # Errors
    /// The report is one that the worker cannot make, or has made too often.
    fn take(
        &mut self,
        worker: u32,
        report: Report,
        given_up: &mut Vec<Positions>,
    ) -> Result<(), String> {
        let Some(handle) = self.workers.get_mut(worker as usize) else {
            return Ok(());
        };
        handle.silent = Duration::ZERO;
        match report {
            // Numbers of another host's threads mean other threads here.
            Report::Hello { .. } if !self.spec.place.is_here() => {}
            Report::Hello { process, threads } => {
                let role = handle.role;
                let threads = threads.into_iter().map(|thread| ThreadOf {
                    role,
                    process,
                    thread,
                });
                self.live.threads.extend(threads);
            }
            Report::Counters(counters) => handle.counters = *counters,
            Report::Passed(..) => {}
            Report::Proven(pairs) => self.apart.proven(&pairs),
            Report::Unproven(streams) => self.again.take(worker, &streams),
            Report::Got(pieces) => self.apart.take(&pieces)?,
            Report::BurstSent(flow, tokens) => {
                if let Some(Some(gate)) = self.burst_gates.get_mut(flow as usize) {
                    gate.sent(tokens);
                }
                self.next_burst(flow as usize);
            }
            Report::Interval(interval) => {
                let workload = &self.spec.brief.workload;
                handle.hand_in(interval.number, most_of_record(workload))?;
                let windowed = !workload.phases.windows.is_empty();
                self.collected.take(interval, windowed)?;
            }
            Report::Ready(addresses) => {
                // A worker is ready once; what it reports again would only add addresses.
                if !std::mem::replace(&mut handle.ready, true) {
                    self.addresses.extend(addresses);
                }
            }
            Report::Failed(failure) => self.fail(failure),
            Report::Stuck(since, positions) => {
                let stream = positions.first().map(|(stream, _)| *stream);
                let flow = stream.and_then(|stream| self.spec.brief.flow_of(stream));
                let gate = flow.and_then(|flow| self.burst_gates.get(flow)?.as_ref());
                let now = self.spec.clock.now();
                let since = gate.map_or(since, |gate| since.min(gate.silent_for(now)));
                if since > PATIENCE_FACTOR * self.live.silence {
                    given_up.push(positions);
                }
            }
            Report::Closing => handle.closing = true,
            Report::Recording(mut recording) => {
                let connecting = recording.connecting.histograms_mut();
                let presence = recording.presence.histograms_mut();
                let late = recording.late.histograms_mut();
                for times in connecting
                    .chain(presence)
                    .chain(late)
                    .chain(&mut recording.slow.latency)
                {
                    times.decode()?;
                }
                handle.recording = Some(*recording);
            }
            Report::Gone(why) => {
                if handle.recording.is_none() && !handle.gone {
                    handle.gone = true;
                    self.fail(why.into());
                }
            }
        }
        Ok(())
    }

    /// Lets the next burst of a flow begin, if the one before is over.
    fn next_burst(&mut self, flow: usize) {
        let Some(table) = self.table else { return };
        let Some(Some(gate)) = self.burst_gates.get_mut(flow) else {
            return;
        };
        let origin = table.origin(&self.spec.brief.workload.flows[flow]);
        if let Some(at) = gate.next(self.spec.clock.now(), origin) {
            for worker in gate.workers.clone() {
                self.workers[worker].send(Command::Burst(flow as u32, at));
            }
        }
    }

    /// Hands out the tokens that are free.
    pub(super) fn hand_out(&mut self) {
        for (flow, tokens) in self.tokens.iter_mut().enumerate() {
            let Some(tokens) = tokens else { continue };
            let workers = &self.workers;
            let more = tokens.hand_out(|worker| {
                let counted = workers[worker].counters.flows.get(flow);
                counted.map_or(0, |flow| flow.unused)
            });
            for (worker, tokens) in more {
                self.workers[worker].send(Command::Grant(flow as u32, tokens));
            }
        }
    }

    /// Ends all connections, gets the recordings and adds everything up.
    pub(super) fn close(mut self, outcome: TrialEnd, observer: &mut dyn Observer) -> TrialRecord {
        self.enter(Phase::Close, observer);
        let now = self.spec.clock.now();
        if let (Some(table), true) = (&mut self.table, outcome != TrialEnd::Completed) {
            // Cut off: what was planned after this moment did not happen.
            table.end = table.end.min(now).max(table.measure);
        }
        // All workers must know: in a brokerless system a client would take the end of its peer for
        // a lost connection.
        self.command(None, &Command::Closing);
        self.await_workers(Duration::from_secs(1), |handle| handle.closing);
        // Lasting state of a system (sessions, last values) is removed one by one.
        let devices = self.spec.brief.workload.devices.len() as u64;
        let patience = Duration::from_secs(2) + Duration::from_millis(devices);
        for role in [Role::Subscribers, Role::Publishers] {
            let until = self.spec.clock.now() + patience.as_nanos() as u64;
            self.command(Some(role), &Command::Finish(until));
            self.await_workers(patience + Duration::from_secs(2), |handle| {
                handle.role != role
            });
        }
        // Before those that hang are ended.
        let outcome = match (outcome, self.unheard()) {
            (TrialEnd::Completed, Some(why)) => TrialEnd::Aborted(why),
            (outcome, _) => outcome,
        };
        for handle in &mut self.workers {
            let over = handle.is_over();
            if let Some(mut link) = handle.link.take()
                && over
            {
                link.join();
            }
        }
        // Reports from before the end.
        self.hear();
        self.record(outcome)
    }

    /// A worker that has given no recording: without it the figures are not those of the trial.
    fn unheard(&mut self) -> Option<String> {
        let silent = self
            .workers
            .iter()
            .position(|handle| handle.recording.is_none())?;
        let hangs = format!("{} did not tell what it saw: it hangs", self.named(silent));
        Some(self.failure.take().unwrap_or(hangs))
    }

    /// Waits until something holds of every worker that is not over, for `patience` at most.
    fn await_workers(&mut self, patience: Duration, holds: impl Fn(&WorkerHandle) -> bool) {
        let patience = Instant::now() + patience;
        while !self.all_workers(&holds) && Instant::now() < patience {
            self.hear();
        }
    }
}
