//! A password for each broker, which no other broker hears.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use pubgauge_collect::Notice;
use pubgauge_collect::config::{self, Config, Given};
use pubgauge_driver::Secret;
use pubgauge_testing::certificates::Authority;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::common::*;

/// Keys of the file of the list, and of the tables.
const SHARED: &str = "Wq7-of-the-list";
const OWN: [&str; 3] = ["Xr8-of-the-first", "Ys9-of-the-second", "Zt1-of-later"];

/// A variable of the environment that each test has.
const VARIABLE: (&str, &str) = ("CARGO_PKG_NAME", env!("CARGO_PKG_NAME"));

/// Brokers of strangers: one of the list, two with passwords of their own, one without any, one whose password is in the
/// environment.
struct Fleet {
    folder: tempfile::TempDir,
    listed: Listener,
    own: [Listener; 2],
    without: Listener,
    of_variable: Listener,
}

impl Fleet {
    fn start() -> Fleet {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("shared"), format!("{SHARED}\n")).unwrap();
        Fleet {
            folder,
            listed: Listener::start(),
            own: [Listener::start(), Listener::start()],
            without: Listener::start(),
            of_variable: Listener::start(),
        }
    }

    fn all(&self) -> [&Listener; 5] {
        let [first, second] = &self.own;
        [
            &self.listed,
            first,
            second,
            &self.without,
            &self.of_variable,
        ]
    }

    /// A configuration whose tables have these passwords.
    fn config(&self, passwords: [&str; 2], given: &Given) -> Config {
        let folder = self.folder.path();
        let mut text = format!(
            "brokers = [\"mqtt://ann@{}\"]\ntopics = [\"t/#\"]\nto = \"data\"\n",
            self.listed.address
        );
        if given.password.is_none() {
            text += "password-file = \"shared\"\n";
        }
        for (nth, (listener, password)) in self.own.iter().zip(passwords).enumerate() {
            let file = format!("own-{nth}");
            std::fs::write(folder.join(&file), format!("{password}\n")).unwrap();
            text += &format!(
                "[[broker]]\naddress = \"mqtt://user{nth}@{}\"\npassword-file = {file:?}\n",
                listener.address
            );
        }
        text += &format!(
            "[[broker]]\naddress = \"mqtt://eve@{}\"\n",
            self.without.address
        );
        text += &format!(
            "[[broker]]\naddress = \"mqtt://env@{}\"\npassword-variable = {:?}\n",
            self.of_variable.address, VARIABLE.0
        );
        let file = folder.join("collect.toml");
        std::fs::write(&file, text).unwrap();
        config::read(&file, given).unwrap()
    }

    /// Asserts that each broker has heard its own passwords and no other.
    #[track_caller]
    fn each_heard_its_own(&self, own: [&[&str]; 2]) {
        let theirs: [&[&str]; 5] = [&[SHARED], own[0], own[1], &[], &[VARIABLE.1]];
        for (nth, (listener, theirs)) in self.all().into_iter().zip(theirs).enumerate() {
            for secret in [SHARED, OWN[0], OWN[1], OWN[2], VARIABLE.1] {
                let heard = listener.heard_of(secret) > 0;
                assert_eq!(heard, theirs.contains(&secret), "{secret} at broker {nth}");
            }
        }
    }
}

fn tried(fleet: &Fleet, times: usize) {
    let before = fleet.all().map(|listener| listener.heard().len());
    until("each is tried", || {
        let mut each = fleet.all().into_iter().zip(before);
        each.all(|(listener, before)| listener.heard().len() >= before + times)
    });
}

#[test]
fn each_broker_hears_its_own_password_alone() {
    let in_environment = Given {
        password: Some(Secret::new(SHARED)),
        ..Given::default()
    };
    for given in [Given::default(), in_environment] {
        let fleet = Fleet::start();
        let collecting = Collecting::begin(fleet.config([OWN[0], OWN[1]], &given));
        tried(&fleet, 3);
        collecting.end();
        fleet.each_heard_its_own([&[OWN[0]], &[OWN[1]]]);
        let users = ["ann", "user0", "user1", "eve", "env"];
        for (listener, user) in fleet.all().into_iter().zip(users) {
            assert_eq!(listener.heard_of(user), listener.heard().len());
        }
    }
}

#[test]
fn a_password_that_is_read_again_goes_to_its_broker_alone() {
    let fleet = Fleet::start();
    let collecting = Collecting::begin(fleet.config([OWN[0], OWN[1]], &Given::default()));
    tried(&fleet, 2);
    let config = fleet.config([OWN[0], OWN[2]], &Given::default());
    collecting.reloads.replace(config);
    collecting.told("reloaded", |notice| *notice == Notice::Reloaded);
    until("the new one is told", || fleet.own[1].heard_of(OWN[2]) >= 1);
    tried(&fleet, 1);
    let before = fleet.own[1].heard_of(OWN[1]);
    tried(&fleet, 1);
    collecting.end();
    assert_eq!(fleet.own[1].heard_of(OWN[1]), before, "the old one goes on");
    fleet.each_heard_its_own([&[OWN[0]], &[OWN[1], OWN[2]]]);
}

#[test]
fn what_cannot_be_read_for_one_broker_is_told_with_it() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let rest = "topics = [\"t\"]\n[[broker]]\naddress = \"mqtts://b.example\"\ntls = { cert = \"c.pem\", key = \"k.pem\" }";
    let config = config(&data, &["mqtts://a.example".into()], rest);
    let begun = pubgauge_collect::Collector::new(
        config,
        pubgauge_collect::names::system(),
        std::sync::Arc::new(|_| {}),
    );
    let Err(error) = begun else {
        panic!("certificates that are not there");
    };
    let (told, file) = (error.to_string(), Path::new("c.pem"));
    let file = place.path().join(file).display().to_string();
    assert!(
        told.starts_with("mqtts://b.example: ") && told.contains(&file),
        "{told}"
    );
}

/// A server of TLS whose certificate nobody trusts, and what each connection has said to it first.
fn impostor(listener: TcpListener) -> Arc<Mutex<Vec<u8>>> {
    let authority = Authority::new();
    let (pem, key) = authority.sign("server", &["127.0.0.1"], |_| {});
    let chain = CertificateDer::pem_file_iter(pem).unwrap();
    let chain = chain.collect::<Result<Vec<_>, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_file(key).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let config = Arc::new(config);
    let heard = Arc::<Mutex<Vec<u8>>>::default();
    let keep = heard.clone();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut tls = rustls::ServerConnection::new(config.clone()).unwrap();
            let mut bytes = [0; 4096];
            let got = rustls::Stream::new(&mut tls, &mut stream).read(&mut bytes);
            keep.lock().unwrap().extend(&bytes[..got.unwrap_or(0)]);
        }
    });
    heard
}

#[test]
fn a_new_password_does_not_go_over_a_connection_that_was_begun_without_proof() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // Its queue is full: whoever comes next is neither taken nor refused.
    rustix::net::listen(&listener, 0).unwrap();
    let full = TcpStream::connect(address).unwrap();
    let (place, ours) = (tempfile::tempdir().unwrap(), Authority::new());
    let data = place.path().join("data");
    std::fs::write(place.path().join("own"), OWN[0]).unwrap();
    let with = |more: &str| {
        let rest =
            format!("topics = [\"t\"]\n[[broker]]\naddress = \"mqtts://ann@{address}\"\n{more}");
        config(&data, &[], &rest)
    };
    let collecting = Collecting::begin(with("tls = { insecure = true }"));
    until("it is tried", || collecting.status.brokers().len() == 1);
    let ca = ours.file("ca.pem");
    let proved = with(&format!("password-file = \"own\"\ntls = {{ ca = {ca:?} }}"));
    collecting.reloads.replace(proved);
    collecting.told("reloaded", |notice| *notice == Notice::Reloaded);
    drop(full);
    let heard = impostor(listener);
    // The kernel tries again meanwhile, after one second and two more.
    collecting.told("it is not trusted", |notice| match notice {
        Notice::Failed { why, .. } => why.contains("nobody in"),
        _ => false,
    });
    collecting.end();
    let heard = heard.lock().unwrap();
    let has = heard
        .windows(OWN[0].len())
        .any(|part| part == OWN[0].as_bytes());
    assert!(!has, "the password went to an impostor");
}
