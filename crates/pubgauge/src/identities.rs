//! Identities of the clients of a plan: whether they hold secrets, and whether their certificates can be used.

use std::collections::HashSet;

use pubgauge_command::exit::Ending;
use pubgauge_driver::Tls;
use pubgauge_net::tls::OwnKey;
use pubgauge_study::Plan;
use pubgauge_workload::Identity;

fn identities(plan: &Plan) -> impl Iterator<Item = &Identity> {
    let devices = plan.trials.iter().flat_map(|trial| &trial.workload.devices);
    devices.filter_map(|device| device.identity.as_deref())
}

/// Whether clients have passwords or keys of their own.
pub fn have_secrets(plan: &Plan) -> bool {
    identities(plan).any(Identity::has_secret)
}

/// Opens the certificate and the key of each client, as its connection will.
///
/// # Errors
/// The first that cannot be used, and whose it is.
pub fn check_certificates(plan: &Plan, tls: Option<&Tls>) -> Result<(), Ending> {
    let passphrase = tls.and_then(|tls| tls.passphrase.as_ref());
    let mut checked = HashSet::new();
    for identity in identities(plan) {
        let Some(certificate) = &identity.certificate else {
            continue;
        };
        if checked.insert(&certificate.file) {
            OwnKey::read(certificate, passphrase).map_err(|error| {
                Ending::bad_input(format!("client with {}: {error}", identity.describe()))
            })?;
        }
    }
    Ok(())
}
