//! Which messages of flows with a window are no longer under way.

use pubgauge_driver::Kind;

use super::{Member, Receiving};
use crate::assignment::Brief;
use crate::ledger::Account;

impl Receiving {
    /// Whatever was sent of these streams so far (measured and warm-up messages) no longer counts as
    /// under way: nothing has come for so long that it is given up.
    pub fn give_up(&mut self, streams: &[(u32, [u32; 2])]) {
        for (stream, sent) in streams {
            let Some(flow) = self.brief.flow_of(*stream) else {
                continue;
            };
            let single = self.brief.audience.fan_out(*stream) == 1;
            for (kind, upto) in [(Kind::Measured, sent[0]), (Kind::WarmUp, sent[1])] {
                for member in self.parties.iter().filter(|_| upto > 0) {
                    let party = &self.brief.audience.parties[member.party as usize];
                    if party.is_apart() {
                        continue;
                    }
                    let account = Account {
                        party: member.party,
                        stream: *stream,
                        kind,
                    };
                    let entitled = || party.is_entitled(*stream);
                    let Some(number) = self.ledger.open(account, entitled) else {
                        continue;
                    };
                    if member.grouped {
                        self.ledger.entry(number).closed = upto;
                    }
                    let here = || parties_here(&self.brief, &self.parties, *stream);
                    self.flows[flow].done += self.progress.pass(
                        &mut self.ledger,
                        number,
                        (*stream, kind),
                        (!single).then_some(here),
                        upto,
                    );
                }
            }
        }
    }

    /// Notes for the flow's window that a party has a message.
    pub(super) fn passed(
        &mut self,
        flow: usize,
        account: Account,
        grouped: bool,
        number: u32,
        sequence: u32,
    ) {
        let entry = self.ledger.entry(number);
        let upto = if !grouped {
            sequence.saturating_add(1)
        } else if sequence >= entry.closed {
            // Members overtake each other: what counts is how many have come.
            entry.passed + 1
        } else {
            return;
        };
        let single = self.brief.audience.fan_out(account.stream) == 1;
        let here = || parties_here(&self.brief, &self.parties, account.stream);
        self.flows[flow].done += self.progress.pass(
            &mut self.ledger,
            number,
            (account.stream, account.kind),
            (!single).then_some(here),
            upto,
        );
    }
}

/// Those of `parties` that hear a stream.
fn parties_here(brief: &Brief, parties: &[Member], stream: u32) -> u32 {
    let all = &brief.audience.parties;
    let hears = |member: &&Member| {
        let party = &all[member.party as usize];
        !party.is_apart() && party.is_entitled(stream)
    };
    parties.iter().filter(hears).count() as u32
}
