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
            websocket: None,
        },
        Scheme {
            name: "mqtts",
            also: &["ssl"],
            encryption: Encryption::Tls,
            usual_port: Some(8883),
            path: None,
            websocket: None,
        },
        Scheme {
            name: "ws",
            also: &[],
            encryption: Encryption::None,
            usual_port: Some(80),
            path: Some("PATH"),
            websocket: USUAL_PATH,
        },
        Scheme {
            name: "wss",
            also: &[],
            encryption: Encryption::Tls,
            usual_port: Some(443),
            path: Some("PATH"),
            websocket: USUAL_PATH,
        },
    ],
};

/// The path that is asked for where an address has none, as most brokers have it.
const USUAL_PATH: Option<&str> = Some("/mqtt");

/// A broker, and what opens it.
#[derive(Clone, Debug)]
pub struct Broker {
    /// Its address, whose name is not looked up yet.
    pub endpoint: Endpoint,
    /// The password for it, and for no other.
    pub password: Option<Secret>,
    /// The certificates for it.
    pub tls: Tls,
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
        Ok(Broker {
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
        ca_pem: None,
        passphrase: pubgauge_driver::Secret::of_variable(pubgauge_driver::KEY_PASSPHRASE_VARIABLE),
        alpn: Vec::new(),
        ca_file: file(&written.ca),
        cert_file: file(&written.cert),
        key_file: file(&written.key),
        server_name: written.server_name.clone(),
        insecure: written.insecure,
    }
}
