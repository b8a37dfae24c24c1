//! Brokers and what opens them, checked.

use std::path::{Path, PathBuf};

use pubgauge_driver::{Encryption, Scheme, Secret, Tls};
use pubgauge_net::endpoint::{Addressing, Endpoint};

use super::faults::Faults;
use super::file::{BrokerFile, CollectFile, Mqtt, TlsFile};
use crate::Error;

/// How brokers are addressed.
const ADDRESSING: Addressing = Addressing {
    name: "MQTT",
    schemes: &[
        Scheme {
            name: "mqtt",
            also: &["tcp"],
            encryption: Encryption::None,
            usual_port: Some(1883),
            path: None,
        },
        Scheme {
            name: "mqtts",
            also: &["ssl"],
            encryption: Encryption::Tls,
            usual_port: Some(8883),
            path: None,
        },
        Scheme {
            name: WEBSOCKET[0],
            also: &[],
            encryption: Encryption::None,
            usual_port: Some(80),
            path: Some("PATH"),
        },
        Scheme {
            name: WEBSOCKET[1],
            also: &[],
            encryption: Encryption::Tls,
            usual_port: Some(443),
            path: Some("PATH"),
        },
    ],
};

/// The schemes of MQTT over WebSocket (5.0 §6), whose ports are those of RFC 6455 §3.
const WEBSOCKET: [&str; 2] = ["ws", "wss"];

/// The path that is asked for where an address has none, as most brokers have it.
const USUAL_PATH: &str = "mqtt";

/// How a path is written.
const WEBSOCKET_HINT: &str = "such as \"wss://HOST/mqtt\"";

/// A broker, and what opens it.
#[derive(Clone, Debug)]
pub struct Broker {
    /// Its address, whose name is not looked up yet.
    pub endpoint: Endpoint,
    /// The password for it, and for no other.
    pub password: Option<Secret>,
    /// The certificates for it.
    pub tls: Tls,
    /// URL that the WebSocket handshake asks for, SCHEME://HOST:PORT/PATH, where MQTT is spoken over WebSocket.
    pub websocket: Option<String>,
}

impl Broker {
    /// One at an address that the user gives, and what opens it.
    ///
    /// # Errors
    /// An address of another form.
    pub fn parse(url: &str, tls: Tls, password: Option<Secret>) -> Result<Broker, Error> {
        let endpoint = Endpoint::read(url, &ADDRESSING).map_err(|error| Error {
            what: error.what,
            hint: error.hint,
            is_input: true,
        })?;
        let websocket = websocket_url(url, &endpoint);
        Ok(Broker {
            websocket: websocket.map_err(|what| Error::input(what, WEBSOCKET_HINT))?,
            endpoint,
            password,
            tls,
        })
    }
}

/// All brokers: those of the list, which share a password and certificates, and those with tables of their own.
/// `given` is the password for the list where no file has it.
pub(super) fn brokers(
    written: &CollectFile,
    folder: &Path,
    given: Option<Secret>,
    faults: &mut Faults,
) -> Vec<Broker> {
    if written.brokers.is_empty() && written.broker.is_empty() {
        faults.add(
            &["brokers"],
            "at least one broker is needed",
            Some("such as \"mqtt://localhost\""),
        );
    }
    let password = match &written.password_file {
        Some(path) => faults.secret(&["password-file"], "the password", &folder.join(path)),
        None => given,
    };
    let tls = tls(&written.tls, &["tls"], folder, faults);
    if written.brokers.is_empty() && !written.broker.is_empty() {
        let shared = [
            ("password-file", written.password_file.is_some()),
            ("tls", written.tls != TlsFile::default()),
        ];
        for (key, _) in shared.into_iter().filter(|(_, is_given)| *is_given) {
            let message = format!("`{key}` is for `brokers`, of which there are none");
            let hint = "say it in the table of each [[broker]] that it is for";
            faults.add(&[key], message, Some(hint));
        }
    }
    let mut brokers: Vec<Broker> = Vec::new();
    for (nth, url) in written.brokers.iter().enumerate() {
        let nth = nth.to_string();
        let steps = ["brokers", &nth];
        if let Some(endpoint) = endpoint(url, &steps, &brokers, faults) {
            brokers.push(Broker {
                websocket: websocket(url, &endpoint, &steps, faults),
                endpoint,
                password: password.clone(),
                tls: tls.clone(),
            });
        }
    }
    for (nth, table) in written.broker.iter().enumerate() {
        let nth = nth.to_string();
        if let Some(endpoint) = endpoint(
            &table.address,
            &["broker", &nth, "address"],
            &brokers,
            faults,
        ) {
            let broker = with_table(endpoint, table, &nth, written.mqtt, folder, faults);
            brokers.push(broker);
        }
    }
    brokers
}

/// The endpoint that an address names, unless that is wrong or one of the `others`.
fn endpoint(url: &str, steps: &[&str], others: &[Broker], faults: &mut Faults) -> Option<Endpoint> {
    let read = Endpoint::read(url, &ADDRESSING);
    let read = read.map_err(|error| faults.add(steps, error.what, error.hint.as_deref()));
    let endpoint = read.ok()?;
    let place = |one: &Endpoint| (one.host.clone(), one.port);
    let mut others = others.iter();
    if others.any(|other| place(&other.endpoint) == place(&endpoint)) {
        faults.add(steps, format!("{} is given twice", endpoint.shown), None);
        return None;
    }
    Some(endpoint)
}

/// The URL that the WebSocket handshake asks for; `None` where MQTT is spoken over TCP.
fn websocket(
    url: &str,
    endpoint: &Endpoint,
    steps: &[&str],
    faults: &mut Faults,
) -> Option<String> {
    let asked_for = websocket_url(url, endpoint);
    let told = asked_for.map_err(|message| faults.add(steps, message, Some(WEBSOCKET_HINT)));
    told.ok().flatten()
}

/// The URL that is asked for at an address, if it is one of WebSocket.
///
/// # Errors
/// That its path cannot be asked for, in words.
fn websocket_url(url: &str, endpoint: &Endpoint) -> Result<Option<String>, String> {
    let Some((scheme, place)) = url.split_once("://") else {
        return Ok(None);
    };
    if !WEBSOCKET.contains(&scheme) {
        return Ok(None);
    }
    let path = place.split_once('/').map_or(USUAL_PATH, |(_, path)| path);
    let shown = &endpoint.shown;
    let url = format!("{shown}/{path}");
    crate::link::websocket::check(&url)
        .map_err(|error| format!("the path of {shown} cannot be asked for: {error}"))?;
    Ok(Some(url))
}

/// A broker with a table of its own, which is the `nth`.
fn with_table(
    endpoint: Endpoint,
    table: &BrokerFile,
    nth: &str,
    version: Option<Mqtt>,
    folder: &Path,
    faults: &mut Faults,
) -> Broker {
    let shown = &endpoint.shown;
    let at = |key| ["broker", nth, key];
    let what = format!("the password of {shown}");
    let password = match (&table.password_file, &table.password_variable) {
        (Some(_), Some(_)) => {
            let message = format!("{what} is in a file, or in a variable of the environment");
            faults.add(
                &at("password-variable"),
                message,
                Some("leave out one of them"),
            );
            None
        }
        (Some(path), None) => faults.secret(&at("password-file"), &what, &folder.join(path)),
        (None, Some(name)) => {
            let value = std::env::var(name).ok();
            if value.is_none() {
                let message = format!("{what}: the environment has no text in `{name}`");
                faults.add(&at("password-variable"), message, None);
            }
            value.map(Secret::new)
        }
        (None, None) => None,
    };
    if password.is_some() && endpoint.username.is_none() && version == Some(Mqtt::V311) {
        let message = format!("{what} needs a user: MQTT 3.1.1 allows none without");
        let hint = "such as \"mqtts://USER@HOST\"";
        faults.add(&at("address"), message, Some(hint));
    }
    let has_tls = endpoint.encryption.is_on();
    if !has_tls && table.tls.is_some() {
        let message = format!("{shown} is not encrypted, and has no use for certificates");
        let hint = "take mqtts:// or wss:// for its address, or leave out `tls`";
        faults.add(&at("tls"), message, Some(hint));
    }
    let written = table.tls.clone().unwrap_or_default();
    Broker {
        password,
        tls: tls(&written, &at("tls"), folder, faults),
        websocket: websocket(&table.address, &endpoint, &at("address"), faults),
        endpoint,
    }
}

/// Certificates, as files from a folder.
fn tls(written: &TlsFile, steps: &[&str], folder: &Path, faults: &mut Faults) -> Tls {
    if written.cert.is_some() != written.key.is_some() {
        faults.add(
            steps,
            "a certificate needs its private key, and the other way round",
            Some("give `cert` and `key`, or neither"),
        );
    }
    if written.insecure && written.ca.is_some() {
        let steps = [steps, &["insecure"]].concat();
        faults.add(
            &steps,
            "`insecure` takes any certificate, also one that `ca` has not signed",
            Some("leave out one of them"),
        );
    }
    let file = |path: &Option<PathBuf>| path.as_ref().map(|path| folder.join(path));
    Tls {
        ca_file: file(&written.ca),
        cert_file: file(&written.cert),
        key_file: file(&written.key),
        server_name: written.server_name.clone(),
        insecure: written.insecure,
    }
}
