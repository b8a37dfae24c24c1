//! Where finished files are moved to, checked.

use std::path::Path;

use pubgauge_quantities::Rate;

use super::direct::{Direct, nothing_here};
use super::faults::{Faults, MS, SECOND};
use super::file::{Acknowledge, CollectFile, Mqtt, UploadFile};
use crate::store::{self, Credentials, StoreAddress};

/// Where finished files are moved to.
#[derive(Clone, Debug)]
pub struct Upload {
    pub place: StoreAddress,
    pub credentials: Credentials,
    /// Messages are acknowledged once they are uploaded.
    pub direct: Option<Direct>,
}

/// Most messages that a broker may have unacknowledged on a connection (MQTT 5.0 §3.1.2.11.3).
const MOST_IN_FLIGHT: f64 = 65_535.0;

pub(super) fn check_upload(
    written: &CollectFile,
    folder: &Path,
    faults: &mut Faults,
) -> Option<Upload> {
    let upload = written.upload.as_ref()?;
    let place = StoreAddress {
        url: upload.to.clone(),
        endpoint: upload.endpoint.clone(),
        region: upload.region.clone(),
    };
    if let Some(endpoint) = upload.endpoint.as_deref().filter(|one| !is_http(one)) {
        let message = format!("`{endpoint}` is no address of a store");
        faults.add(
            &["upload", "endpoint"],
            message,
            Some("expected http://HOST:PORT or https://HOST:PORT"),
        );
    }
    let mut credentials = Credentials::of_environment();
    let read = upload
        .credentials_file
        .as_ref()
        .map_or(Ok(()), |path| credentials.add_file(&folder.join(path)));
    // Without the file it is not known what opens the place.
    match read.map(|()| store::check(&place, &credentials)) {
        Ok(Ok(())) => {}
        Ok(Err((what, hint))) => faults.add(&["upload", "to"], what, Some(hint)),
        Err(what) => faults.add(&["upload", "credentials-file"], what, None),
    }
    let direct = match upload.acknowledge.unwrap_or_default() {
        Acknowledge::Uploaded => Some(direct(written, upload, faults)),
        Acknowledge::OnDisk => {
            let given = [
                ("every", upload.every.is_some()),
                ("bytes", upload.bytes.is_some()),
                ("rate", upload.rate.is_some()),
            ];
            for (key, _) in given.into_iter().filter(|(_, given)| *given) {
                let message = format!("`{key}` is for acknowledge = \"uploaded\"");
                faults.add(
                    &["upload", key],
                    message,
                    Some("files are as large as `log.segment` and `log.segment-age` say"),
                );
            }
            None
        }
    };
    Some(Upload {
        place,
        credentials,
        direct,
    })
}

fn is_http(endpoint: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| {
        endpoint
            .strip_prefix(scheme)
            .is_some_and(|rest| !rest.is_empty() && !rest.contains('@'))
    })
}

fn direct(written: &CollectFile, upload: &UploadFile, faults: &mut Faults) -> Direct {
    let every = faults.span(
        &["upload", "every"],
        upload.every,
        SECOND,
        (10 * MS, 60 * SECOND),
    );
    let bytes = faults.size(
        &["upload", "bytes"],
        upload.bytes,
        16 << 20,
        (64 << 10, 256 << 20),
    );
    let per_s = match upload.rate {
        Some(Rate::All(per_s)) if per_s > 0.0 => Some(per_s),
        Some(_) => {
            faults.add(
                &["upload", "rate"],
                "this takes a number of messages a second",
                Some("such as \"1k/s\""),
            );
            None
        }
        None => {
            let hint = "such as rate = \"1k/s\": a broker stops at its limit of unacknowledged messages until they are uploaded";
            let message =
                "acknowledge = \"uploaded\" needs the `rate` of messages from each broker";
            faults.add(&["upload"], message, Some(hint));
            None
        }
    };
    let in_flight = per_s.unwrap_or_default() * every.as_secs_f64();
    if in_flight > MOST_IN_FLIGHT {
        let (per_s, every_ms) = (per_s.unwrap_or_default(), every.as_millis());
        let message = format!(
            "{per_s} messages a second, gathered for {every_ms} ms, are {in_flight:.0} unacknowledged ones"
        );
        let hint = "MQTT allows 65535 on a connection: gather for a shorter time, or add collectors in a group";
        faults.add(&["upload", "rate"], message, Some(hint));
    }
    if written.mqtt == Some(Mqtt::V311) {
        let hint = "MQTT 3.1.1 does not tell how many unacknowledged messages a broker allows";
        faults.add(
            &["mqtt"],
            "acknowledge = \"uploaded\" needs MQTT 5",
            Some(hint),
        );
    }
    let with = "acknowledge = \"uploaded\"";
    nothing_here(written, with, &["upload", "acknowledge"], faults);
    Direct {
        every,
        bytes: bytes as usize,
        per_s,
    }
}
