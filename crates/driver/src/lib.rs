//! The driver interface (the seam), through which every middleware is reached.
//!
//! A *driver* speaks to one kind of system (MQTT, ZeroMQ, ...). It opens *fleets*: one worker
//! thread's share of the clients of one system. The engine owns time, the message header,
//! counting and the schedule; a driver moves bytes and says what it can do. A driver never
//! paces, stamps, counts, prints or retries of its own accord.

mod address;
pub mod capability;
mod check;
pub mod clock;
mod driver;
mod drivers;
pub mod footprint;
mod grant;
pub mod header;
mod lifecycle;
mod login;
mod native;
pub mod payload;
mod resolution;
pub mod resource;
pub mod seam;
mod secret;
pub mod settings;
pub mod share;
mod shortened;
pub mod topic;
pub mod travel;
mod will;

pub use address::{
    Encryption, Scheme, addresses, is_host, is_on_loopback, percent_decode, split_zone,
};
pub use capability::{Answer, Capability, Filtering, Support, Topology, UnknownCapability};
pub use check::Check;
pub use clock::{Clock, Course, Nanos, NoCourse, monotonic_now};
pub use driver::Driver;
pub use drivers::Drivers;
pub use footprint::{Crowd, Footprint, Ports};
pub use grant::Grant;
pub use header::{Header, Kind, Mark};
pub use lifecycle::{Lifecycle, ServerEnd};
pub use login::{Identification, Login, OwnCertificate};
pub use native::NativeSettings;
pub use payload::{Filler, Payload};
pub use resolution::{Cannot, Resolution, Resolved, accepted, becomes, cannot, spelt};
pub use resource::{Attempt, Resource};
pub use seam::{
    Acknowledgement, Change, ClientId, ClientSpec, Delivery, DriverError, Events, Failure, Fleet,
    FleetConfig, InProcessSystem, KEY_PASSPHRASE_VARIABLE, OnNetwork, PASSWORD_VARIABLE, Publish,
    Refusal, Subscription, Target, Tls, TopicId, Traits, WireBytes,
};
pub use secret::Secret;
pub use settings::{
    Batching, Durability, Mapping, MessagingPattern, OnFull, Reliability, Session, Settings,
    Transport, Unsupported,
};
pub use shortened::shortened;
pub use topic::TopicMatch;
pub use travel::{Carries, Travel};
pub use will::{Will, WillStamp};
