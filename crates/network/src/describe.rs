//! A network in words, for `pubgauge plan`.

use std::fmt::Write;

use pubgauge_quantities::shown::{bit_rate, span, three_decimals};

use crate::network::{HostRole, Hosts, Link, LinkState, Loss, Network, Reordering};

impl Network {
    /// The network in lines of at most 80 columns: the links of each role, and the paths between hosts.
    pub fn describe(&self) -> String {
        let roles: Vec<HostRole> = HostRole::ALL
            .into_iter()
            .filter(|role| self.hosts_of(*role).hosts > 0)
            .collect();
        let mut text = format!(
            "{} hosts around one switch; each link, each way:\n",
            self.hosts().count()
        );
        for role in &roles {
            let Hosts { hosts, link } = self.hosts_of(*role);
            let plural = if *hosts == 1 { "host" } else { "hosts" };
            let name = format!("{hosts} {} {plural}", role.name());
            push(&mut text, &format!("  {name:<22}"), &link.properties());
        }
        text.push_str("from host to host, over both links:\n");
        for (from, to) in pairs(self, &roles) {
            let name = format!("{} to {}", from.name(), to.name());
            let words = path(&self.hosts_of(from).link, &self.hosts_of(to).link);
            push(&mut text, &format!("  {name:<25}"), &words);
        }
        text
    }
}

/// Roles between which messages go: (sender, receiver).
fn pairs(network: &Network, roles: &[HostRole]) -> Vec<(HostRole, HostRole)> {
    let mut pairs = Vec::new();
    for (index, from) in roles.iter().enumerate() {
        if network.hosts_of(*from).hosts > 1 && roles.len() == 1 {
            pairs.push((*from, *from));
        }
        for to in &roles[index + 1..] {
            // Messages go from publishers to brokers.
            pairs.push(match (from, to) {
                (HostRole::Broker, HostRole::Publisher) => (*to, *from),
                _ => (*from, *to),
            });
        }
    }
    pairs
}

impl Link {
    /// Its properties in words.
    fn properties(&self) -> Vec<String> {
        let mut words = vec![match self.rate_bits_per_s {
            Some(bits) => format!("{}, queue {}", bit_rate(bits), span(self.queue_ns)),
            None => "rate not limited".into(),
        }];
        match (self.delay_ns, self.jitter_ns) {
            (0, _) => {}
            (delay, 0) => words.push(format!("{} delay", span(delay))),
            (delay, jitter) => words.push(format!("{} +- {} delay", span(delay), span(jitter))),
        }
        match self.loss {
            None => {}
            Some(Loss::Independent { share }) => words.push(format!("{} lost", percent(share))),
            Some(Loss::Gilbert {
                share,
                burst_packets,
            }) => words.push(format!(
                "{} lost in bursts of {burst_packets:.1}",
                percent(share)
            )),
        }
        if self.duplicated > 0.0 {
            words.push(format!("{} twice", percent(self.duplicated)));
        }
        match self.reordering {
            None => {}
            Some(Reordering::Jitter) => words.push("overtaking by jitter".into()),
            Some(Reordering::Share { share }) => {
                words.push(format!("{} not delayed", percent(share)));
            }
        }
        match self.state {
            LinkState::Up => {}
            LinkState::SendsNothing => words.push("cut from the host".into()),
            LinkState::HearsNothing => words.push("cut to the host".into()),
            LinkState::Cut => words.push("cut".into()),
        }
        words
    }
}

/// The sum of both links of a path, in words.
fn path(from: &Link, to: &Link) -> Vec<String> {
    let rates = [from.rate_bits_per_s, to.rate_bits_per_s];
    let mut words = vec![match rates.into_iter().flatten().min() {
        Some(bits) => bit_rate(bits),
        None => "rate not limited".into(),
    }];
    match from.delay_ns + to.delay_ns {
        0 => {}
        delay => words.push(format!(
            "{} one way, {} and back",
            span(delay),
            span(2 * delay)
        )),
    }
    let kept = |link: &Link| 1.0 - link.loss.map_or(0.0, |loss| loss.share());
    let lost = 1.0 - kept(from) * kept(to);
    if lost > 0.0 {
        words.push(format!("{} lost", percent(lost)));
    }
    if !from.state.sends() || !to.state.hears() {
        words.push("cut".into());
    }
    words
}

/// Adds words after a name, broken into lines.
fn push(text: &mut String, name: &str, words: &[String]) {
    const WIDTH: usize = 80;
    let mut column = name.len();
    text.push_str(name);
    for (index, word) in words.iter().enumerate() {
        let comma = if index + 1 < words.len() { "," } else { "" };
        let needed = word.len() + comma.len() + 1;
        if column > name.len() && column + needed > WIDTH {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n{:1$}", "", name.len());
            column = name.len();
        }
        let _ = write!(text, " {word}{comma}");
        column += needed;
    }
    text.push('\n');
}

fn percent(share: f64) -> String {
    format!("{} %", three_decimals(share * 100.0))
}
