//! Helpers of the tests: a real ejabberd, and clients that publish.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pubgauge_driver::{Drivers, Settings, Target, header};
use pubgauge_driver_xmpp::XmppDriver;
use pubgauge_testbed::SystemFile;
use pubgauge_testing::{DeliveredMessage, Rig, Server};

/// A private ejabberd, as `systems/ejabberd.toml` describes it.
pub struct Ejabberd {
    pub server: Server,
    _alone: MutexGuard<'static, ()>,
}

/// One server at a time: the suite has its patience, and the machine may be small.
static ALONE: Mutex<()> = Mutex::new(());

impl Ejabberd {
    pub fn start(variant: &str) -> Ejabberd {
        Self::start_with(variant, |text| text)
    }

    /// With a changed description.
    pub fn start_with(variant: &str, change: impl FnOnce(String) -> String) -> Ejabberd {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../../systems/ejabberd.toml"
        );
        let text = change(std::fs::read_to_string(path).unwrap());
        let system = SystemFile::parse(&text, "ejabberd.toml").unwrap();
        Ejabberd {
            server: Server::start(Drivers::default(), &system, Some(variant)),
            _alone: alone,
        }
    }

    pub fn target(&self) -> Target {
        self.server.target.clone()
    }

    /// A fleet of its clients.
    pub fn rig(&self, settings: Settings) -> Rig {
        Rig::open(&XmppDriver, self.target(), settings)
    }
}

/// A message that [`Rig::publish_body`] was given.
pub fn text(message: &DeliveredMessage) -> &[u8] {
    &message.payload[header::HEADER_LEN..]
}
