//! `pubgauge-collect replay`.

use jiff::Timestamp;
use pubgauge_collect::config::Mqtt;
use pubgauge_collect::replay::{self, ReplayOptions, ReplayTarget, Replayed};
use pubgauge_command::exit::{Ending, FINE, NOT_VALID, tell};
use pubgauge_command::signals::{self, Reactions};
use pubgauge_driver::Tls;
use pubgauge_quantities::shown::so_many;

use crate::args::{MqttVersion, ReplayArgs};
use crate::ending;

/// Publishes stored messages; the exit code.
pub fn replay(args: &ReplayArgs) -> Result<i32, Ending> {
    let time = |flag: &str, text: &Option<String>| {
        let read = text.as_deref().map(|text| time(flag, text));
        read.transpose()
    };
    let options = ReplayOptions {
        from_ns: time("--from", &args.from)?,
        until_ns: time("--until", &args.until)?,
        filters: args.topic.clone(),
        speed: factor(&args.speed)?,
        topic_prefix: args.topic_prefix.clone(),
    };
    let login = &args.login;
    let tls = Tls {
        ca_pem: None,
        passphrase: login.key_passphrase()?,
        alpn: login.alpn.clone(),
        ca_file: login.ca.clone(),
        cert_file: login.cert.clone(),
        key_file: login.key.clone(),
        server_name: None,
        insecure: login.insecure,
    };
    let password = login.password()?;
    let version = match args.mqtt {
        Some(MqttVersion::V311) => Mqtt::V311,
        _ => Mqtt::V5,
    };
    let target = ReplayTarget::parse(&args.to_broker, tls, password, version).map_err(ending)?;
    let stop = signals::install(Reactions::default()).map_err(Ending::not_valid)?;
    let is_quiet = args.output.quiet;
    let mut show = |so_far: &Replayed, received_ns: i64| {
        if !is_quiet {
            tell!("{}", progress(so_far, received_ns));
        }
    };
    let replayed =
        replay::replay(&args.dir, &target, &options, &stop, &mut show).map_err(ending)?;
    args.output.print_result(&replayed, || in_words(&replayed));
    let Replayed {
        refused,
        not_kept,
        not_taken,
        faults,
        ended,
        ..
    } = &replayed;
    let is_all = refused + not_kept + not_taken == 0 && faults.is_empty() && ended.is_none();
    Ok(if is_all { FINE } else { NOT_VALID })
}

fn time(flag: &str, text: &str) -> Result<i64, Ending> {
    let time: Timestamp = text.parse().map_err(|_| {
        Ending::bad_input(format!(
            "{flag} {text}: is no time\n  hint: expected RFC 3339, such as 2026-11-26T07:00:00Z"
        ))
    })?;
    i64::try_from(time.as_nanosecond())
        .map_err(|_| Ending::bad_input(format!("{flag} {text}: expected a year from 1678 to 2261")))
}

/// By how much messages are faster than they were; none for as fast as the broker takes them.
fn factor(text: &str) -> Result<Option<f64>, Ending> {
    if text == "max" {
        return Ok(None);
    }
    let factor = text.parse::<f64>().ok();
    match factor.filter(|factor| factor.is_finite() && *factor > 0.0) {
        Some(factor) => Ok(Some(factor)),
        None => Err(Ending::bad_input(format!(
            "--speed {text}: is no factor above 0\n  hint: such as 1, 10 or max"
        ))),
    }
}

fn progress(so_far: &Replayed, received_ns: i64) -> String {
    let received = Timestamp::from_nanosecond(i128::from(received_ns));
    let received = received.map(|time| time.strftime("%FT%TZ").to_string());
    format!(
        "{} published, {} acknowledged; received at {}",
        so_many(so_far.published, "message"),
        so_far.acknowledged,
        received.unwrap_or_default()
    )
}

fn in_words(replayed: &Replayed) -> String {
    let mut text = format!(
        "{} published, {} acknowledged, at most {} ms late\n",
        so_many(replayed.published, "message"),
        replayed.acknowledged,
        replayed.lag_ms,
    );
    if replayed.refused > 0 {
        text += &format!(
            "{} refused by the broker\n",
            so_many(replayed.refused, "message")
        );
    }
    if replayed.not_kept > 0 {
        text += &format!(
            "{} not published: their payloads are not stored\n  hint: they were decoded and `payload.keep` is false; messages that are to be replayed need `payload.keep = true` when they are collected\n",
            so_many(replayed.not_kept, "message")
        );
    }
    if replayed.not_taken > 0 {
        text += &format!(
            "{} not published: the broker takes none that are so large, or retains none\n",
            so_many(replayed.not_taken, "message")
        );
    }
    for fault in &replayed.faults {
        text += &format!("fault: {} {}\n", fault.place, fault.what);
    }
    if let Some(why) = &replayed.ended {
        text += &format!("ended before its end: {why}\n");
    }
    let goes_on = replayed.goes_on_from_ns.map(i128::from);
    if let Some(Ok(time)) = goes_on.map(Timestamp::from_nanosecond) {
        text += &format!("  hint: go on with --from {time}\n");
    }
    text
}
