//! Advice: which middleware carries a fleet of devices, with how much to spare, and at what cost.
//!
//! A [`Fleet`] is what devices and applications do, in their own words, and what must hold. It asks promises of a system
//! ([`Promise`]), which are shown on the running system, and becomes studies ([`Fleet::study`]), which are measured. An
//! [`Adviser`] says which step comes next, takes what the step measured, and concludes. Pure: whoever asks it runs the
//! steps, and whatever it names was measured: in these steps, or in stored runs that are known to be alike.

#![forbid(unsafe_code)]

mod adviser;
mod answer;
mod boxes;
mod evidence;
mod fleet;
mod load;
mod promises;
mod rank;
mod screen;
mod stage;
mod stored;
mod study;
mod variation;

pub use adviser::Adviser;
pub use answer::{Advice, FORMAT, LeftOut, OtherFleet, Recommendation, Undecided, WhyOut, schema};
pub use boxes::{BoxCount, BoxPlan, KnownBy, NotTold, Room, WhyNotTold};
pub use evidence::{Evidence, EvidenceOf, NotCounted, Source, StoredAt};
pub use fleet::{
    ApplicationsFile, BOX_SIZE, BOX_WITHOUT_SIZE, CommandsFile, Delivery, DevicesFile, Fleet,
    FleetFile, Hears, MachineFile, MustFile, OfflineFile, Survives, fleet_schema,
};
pub use promises::Promise;
pub use screen::render;
pub use stage::{Candidate, Stage, StageKind};
pub use stored::{Here, StoredRun, SystemHere};
pub use variation::Variation;
