//! A fleet whose events are recorded, and a RabbitMQ of a test's own.
#![allow(dead_code)] // Each test file uses its own part.

pub mod peer;

use std::collections::BTreeMap;
use std::process::Command;

use pubgauge_driver::*;
use pubgauge_driver_amqp::AmqpDriver;
use pubgauge_testbed::{Running, SystemFile};

pub use pubgauge_testing::*;

pub fn target(port: u16) -> Target {
    Target::single(format!("amqp://127.0.0.1:{port}"))
}

pub fn open(target: Target, settings: Settings) -> Rig {
    Rig::open(&AmqpDriver, target, settings)
}

pub fn on(port: u16, settings: Settings) -> Rig {
    open(target(port), settings)
}

/// These settings and one of the driver's own.
pub fn native(mut settings: Settings, name: &str, value: serde_json::Value) -> Settings {
    pubgauge_testing::native(&mut settings, "amqp", name, value);
    settings
}

/// A RabbitMQ, started from `systems/rabbitmq.toml`.
pub struct Rabbit {
    pub target: Target,
    /// Environment of its tools.
    env: BTreeMap<String, String>,
    /// Absent where others use it too.
    own: Option<Server>,
}

impl Rabbit {
    /// One that tests share which do not disturb each other: it takes ten seconds to start.
    pub fn shared() -> Rabbit {
        let (target, env) = pubgauge_testing::shared("rabbitmq", || {
            let rabbit = Rabbit::start(|_| {});
            ((rabbit.target, rabbit.env), Box::new(rabbit.own))
        });
        Rabbit {
            target,
            env,
            own: None,
        }
    }

    /// One of its own, its description changed before it is started.
    pub fn start(change: impl FnOnce(&mut SystemFile)) -> Rabbit {
        let mut system = system("rabbitmq");
        change(&mut system);
        let server = Server::start(AmqpDriver, &system, None);
        Rabbit {
            target: server.target.clone(),
            env: server.record.env.clone(),
            own: Some(server),
        }
    }

    pub fn running(&mut self) -> &mut Running {
        self.own.as_mut().expect("a shared one is not touched")
    }

    pub fn rig(&self, settings: Settings) -> Rig {
        open(self.target.clone(), settings)
    }

    /// Runs `rabbitmqctl` on this node and gives what it prints.
    pub fn ctl(&self, arguments: &[&str]) -> String {
        let output = Command::new("/usr/lib/rabbitmq/bin/rabbitmqctl")
            .env_clear()
            .envs(&self.env)
            .args(["-n", &self.env["RABBITMQ_NODENAME"]])
            .args(arguments)
            .output()
            .expect("these tests need rabbitmqctl (apt install rabbitmq-server)");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {text}{complaint}");
        text
    }

    pub fn port(&self) -> u16 {
        let (_, port) = self.target.endpoints[0].rsplit_once(':').unwrap();
        port.parse().unwrap()
    }
}

/// Settings that promise that nothing is lost.
pub fn reliable() -> Settings {
    Settings {
        reliability: Some(Reliability::AtLeastOnce),
        ..Settings::default()
    }
}

/// Those, with a session that stays.
pub fn durable() -> Settings {
    Settings {
        session: Some(Session::Durable),
        ..reliable()
    }
}
