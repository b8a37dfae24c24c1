//! The connection itself: greeting, login, negotiated limits, close, and the texts of its errors.

use std::collections::VecDeque;

use crate::codec::method::{
    ConnectionCloseOk, ConnectionOpen, ConnectionStart, ConnectionStartOk, ConnectionTune,
    ConnectionTuneOk, Long,
};
use crate::codec::{FRAME_MIN, Method, TableBuf, Value};
use pubgauge_driver::Events;
use pubgauge_net::fleet::{Broken, State};

use crate::client::{L, LoginStep, breach, send, unexpected};
use crate::options::Sasl;
use crate::shared::Amqp;

/// User name and password that RabbitMQ accepts by default, from its own host only.
const DEFAULT_LOGIN: &str = "guest";

/// Channels that a client may use.
const CHANNELS: u16 = 2;

/// A method on channel 0.
pub(crate) fn connection(
    amqp: &mut Amqp,
    link: &mut L<'_>,
    method: Method<'_>,
    events: &mut dyn Events,
) -> Result<(), Broken> {
    match (link.client.own.step, method) {
        (LoginStep::Greeting, Method::ConnectionStart(start)) => greet(amqp, link, &start),
        (LoginStep::LoggingIn, Method::ConnectionTune(tune)) => enter(amqp, link, &tune),
        (LoginStep::LoggingIn, Method::ConnectionSecure(_)) => Err(link.broken(
            "the server asks for more than one step of SASL\n  hint: this driver has PLAIN and EXTERNAL, see native.amqp.sasl",
        )),
        (LoginStep::Entering, Method::ConnectionOpenOk(_)) => {
            link.client.own.step = LoginStep::Opening;
            amqp.open_channels(link);
            finish(amqp, link, events);
            Ok(())
        }
        (_, Method::ConnectionClose(close)) => {
            let ok = Method::ConnectionCloseOk(ConnectionCloseOk::default());
            send(link, 0, ok);
            Err(closed(link,
                "connection",
                close.reply_code,
                close.reply_text,
                (close.class_id, close.method_id),
            ))
        }
        // The answer to our connection.close; by the state `Closing` the fleet knows that it was
        // asked for.
        (_, Method::ConnectionCloseOk(_)) if link.client.state == State::Closing => {
            Err(Broken::new(String::new()))
        }
        (_, Method::ConnectionBlocked(_)) => {
            link.client.own.blocked = true;
            Ok(())
        }
        // `Writable` is reported after the read.
        (_, Method::ConnectionUnblocked(_)) => {
            link.client.own.blocked = false;
            Ok(())
        }
        (_, method) => Err(unexpected(link, &method)),
    }
}

/// connection.start: chooses a SASL mechanism and logs in.
fn greet(amqp: &mut Amqp, link: &mut L<'_>, start: &ConnectionStart<'_>) -> Result<(), Broken> {
    let username = link.username();
    let has_certificate = link.has_own_certificate() || amqp.has_certificate;
    let sasl = amqp.options.sasl.unwrap_or({
        let by_certificate =
            link.endpoint().encryption.is_on() && has_certificate && username.is_none();
        if by_certificate {
            Sasl::External
        } else {
            Sasl::Plain
        }
    });
    let (mechanism, response) = match sasl {
        Sasl::External => ("EXTERNAL", Vec::new()),
        Sasl::Plain => {
            let user = username.unwrap_or(DEFAULT_LOGIN);
            let password = match (link.password(), username) {
                (Some(password), _) => password.reveal(),
                (None, None) => DEFAULT_LOGIN,
                (None, Some(_)) => "",
            };
            // RFC 4616: authorisation identity (none), user, password.
            let response = [&[0], user.as_bytes(), &[0], password.as_bytes()].concat();
            ("PLAIN", response)
        }
    };
    let offered = String::from_utf8_lossy(start.mechanisms.0);
    if !offered.split_ascii_whitespace().any(|m| m == mechanism) {
        return Err(link.broken(format_args!(
            "the server does not take SASL {mechanism}, only {offered}\n  hint: {}",
            match sasl {
                Sasl::External =>
                    "EXTERNAL needs TLS with a client certificate and, on RabbitMQ, the plug-in rabbitmq_auth_mechanism_ssl with auth_mechanisms.1 = EXTERNAL; or set native.amqp.sasl = \"plain\"",
                Sasl::Plain => "this driver has PLAIN and EXTERNAL, see native.amqp.sasl",
            }
        )));
    }
    let mut capabilities = TableBuf::default();
    let mut properties = TableBuf::default();
    let mut fill = || -> Result<(), crate::codec::EncodeError> {
        for name in [
            "publisher_confirms",
            "basic.nack",
            "consumer_cancel_notify",
            "connection.blocked",
            "authentication_failure_close",
        ] {
            capabilities.push(name, Value::Bool(true))?;
        }
        properties
            .push("product", Value::Long(b"pubgauge"))?
            .push("version", Value::Long(env!("CARGO_PKG_VERSION").as_bytes()))?
            .push("connection_name", Value::Long(link.client.name.as_bytes()))?
            .push("capabilities", Value::Table(capabilities.as_table()))?;
        Ok(())
    };
    // Cannot fail: constant names, and a client's name of bounded length.
    let _ = fill();
    let start_ok = Method::ConnectionStartOk(ConnectionStartOk {
        client_properties: properties.as_table(),
        mechanism: mechanism.as_bytes(),
        response: Long(&response),
        locale: b"en_US",
        ..ConnectionStartOk::default()
    });
    link.client.own.step = LoginStep::LoggingIn;
    send(link, 0, start_ok);
    Ok(())
}

/// connection.tune: settles the limits and enters the virtual host.
fn enter(amqp: &mut Amqp, link: &mut L<'_>, tune: &ConnectionTune<'_>) -> Result<(), Broken> {
    if tune.channel_max != 0 && tune.channel_max < CHANNELS {
        return Err(link.broken(format_args!(
            "the server allows {} channel for each connection, and a client may need {CHANNELS}\n  hint: raise the server's channel_max",
            tune.channel_max
        )));
    }
    link.client.own.frame_max = match tune.frame_max {
        0 => amqp.options.frame_max,
        n if n < FRAME_MIN as u32 => {
            return Err(breach(
                link,
                format!("frames of {n} bytes at most, below the least of {FRAME_MIN} (§4.2.3)"),
            ));
        }
        n => n.min(amqp.options.frame_max),
    };
    link.client.own.heartbeat_s = amqp.options.heartbeat_s.unwrap_or(tune.heartbeat);
    let tune_ok = Method::ConnectionTuneOk(ConnectionTuneOk {
        channel_max: CHANNELS,
        frame_max: link.client.own.frame_max,
        heartbeat: link.client.own.heartbeat_s,
        ..ConnectionTuneOk::default()
    });
    send(link, 0, tune_ok);
    let host = amqp.virtual_host(link).to_owned();
    let open = Method::ConnectionOpen(ConnectionOpen {
        virtual_host: host.as_bytes(),
        ..ConnectionOpen::default()
    });
    link.client.own.step = LoginStep::Entering;
    send(link, 0, open);
    Ok(())
}

/// Reports the client as connected once nothing is awaited any more.
pub(crate) fn finish(amqp: &mut Amqp, link: &mut L<'_>, events: &mut dyn Events) {
    let own = &link.client.own;
    let publishing = own.publisher.iter().map(|p| &p.awaits);
    let consuming = own.consumer.iter().map(|c| &c.awaits);
    let answered = publishing.chain(consuming).all(VecDeque::is_empty);
    if own.step != LoginStep::Opening || !answered {
        return;
    }
    link.client.own.step = LoginStep::Done;
    link.connected();
    let heartbeat_s = link.client.own.heartbeat_s;
    if heartbeat_s > 0 {
        link.set_timer(u32::from(heartbeat_s) * 500);
    }
    let session_present = link.client.own.session_present;
    link.report_connected(events, session_present);
    if session_present {
        amqp.resume(link);
    }
}

/// The text for a refused login: `what` the server did, why, and what to do.
pub(crate) fn refused(link: &L<'_>, what: &str) -> String {
    let username = link.username().is_some();
    let password = link.password().is_some();
    let (why, hint) = link.login_refused();
    let guest = match (username, password) {
        (false, false) => {
            ", so that guest was tried, whom RabbitMQ lets in from its own host only (loopback_users)"
        }
        _ => "",
    };
    format!(
        "{}: {what}: {why}{guest}\n  hint: {hint}",
        link.display_endpoint()
    )
}

/// Why the server closed a channel or the connection, in the server's words, and what to do.
pub(crate) fn closed(
    link: &L<'_>,
    what: &str,
    code: u16,
    text: &[u8],
    (class, method): (u16, u16),
) -> Broken {
    let text = String::from_utf8_lossy(text);
    if code == 403 && link.client.own.step == LoginStep::LoggingIn {
        let what = format!("the server closed the {what}: {text} ({code})");
        return Broken::new(refused(link, &what));
    }
    let about = match (class, method) {
        (0, 0) => String::new(),
        (class, method) => format!(", about method {class}.{method}"),
    };
    let hint = match code {
        320 => "the server was stopped, or somebody closed the connection there",
        311 => "the message is larger than the server allows (max_message_size)",
        402 | 403 => {
            "check user name, password, and what this user may do in the virtual host (rabbitmqctl list_permissions); guest may connect from the server's own host only, unless loopback_users says otherwise"
        }
        404 => "an exchange or queue is not there (any more)",
        405 => "another connection holds it as its own: is a client of this name still connected?",
        406 => {
            "it is there with other properties, from a run with other settings: delete it (rabbitmqctl delete_queue NAME), or wait until it expires"
        }
        506 => "the server is out of memory, disk or descriptors: its log says which",
        530 => {
            "check the virtual host (the endpoint's path, native.amqp.virtual-host), the user's permissions there and the server's limits"
        }
        540 => "the server does not have this",
        541 => "the server failed inside: its log says how",
        _ => "the server's log may say more",
    };
    link.broken(format_args!(
        "the server closed the {what}: {text} ({code}{about})\n  hint: {hint}"
    ))
}
