//! The options as the shim's configuration.

use std::net::Ipv4Addr;

use pubgauge_driver::{DriverError, FleetConfig};

use crate::ffi::{Config, MOST_HOSTS};
use crate::native::ns;
use crate::options::FastOptions;

/// The shim's configuration.
pub(super) fn shim_config(
    config: &FleetConfig,
    options: &FastOptions,
    domain: u32,
) -> Result<Config, DriverError> {
    let max_payload = u32::try_from(config.max_payload)
        .ok()
        .filter(|bytes| *bytes < 1 << 31)
        .ok_or_else(|| DriverError::new("Fast DDS samples are shorter than 2 GiB"))?;
    let native = &options.native;
    let (own_host, hosts) = match &config.target.network {
        Some(network) => (network.address, network.hosts.clone()),
        None => (Ipv4Addr::LOCALHOST, vec![Ipv4Addr::LOCALHOST]),
    };
    if hosts.len() > MOST_HOSTS {
        let told = format!(
            "Fast DDS finds participants on {MOST_HOSTS} hosts at most, and here are {}",
            hosts.len()
        );
        return Err(DriverError::with_hint(
            told,
            "use fewer hosts with more processes on each",
        ));
    }
    let mut host = [0; MOST_HOSTS];
    for (to, address) in host.iter_mut().zip(&hosts) {
        *to = address.to_bits();
    }
    let or_default = |v: Option<i32>| v.unwrap_or(-1);
    let or_library = |ms: Option<f64>| ns(ms).unwrap_or(-1);
    Ok(Config {
        domain,
        peers: native.discovery_peers,
        transport: u32::from(options.shared_memory),
        multicast: u32::from(options.multicast),
        intraprocess: u32::from(native.intraprocess),
        max_payload,
        send_buffer_bytes: or_default(native.send_buffer_bytes),
        receive_buffer_bytes: or_default(native.receive_buffer_bytes),
        max_message_bytes: or_default(native.max_message_bytes),
        multicast_hops: native.multicast_hops.map_or(-1, |hops| hops as i32),
        reliable: u32::from(options.reliable),
        reader_transient_local: u32::from(options.last_value),
        writer_transient_local: u32::from(options.writer_transient_local()),
        asynchronous: u32::from(options.asynchronous()),
        piggyback: u32::from(native.piggyback),
        data_sharing: u32::from(native.data_sharing),
        writer_depth: options.writer_depth(),
        reader_depth: options.reader_depth(),
        writer_samples: options.writer_samples(config.max_payload),
        reader_samples: options.reader_samples(config.max_payload),
        heartbeat_ns: options.heartbeat_ns().unwrap_or(-1),
        nack_response_ns: or_library(native.nack_response_delay_ms),
        heartbeat_response_ns: or_library(native.heartbeat_response_delay_ms),
        lifespan_ns: options.lifespan_ms.map_or(-1, |ms| {
            i64::try_from(ms).unwrap_or(i64::MAX / 1_000_000) * 1_000_000
        }),
        flow_bytes_per_period: options.flow_bytes,
        flow_period_ms: native.flow_period_ms,
        flow_scheduler: options.scheduler().map_or(-1, |s| s as i32),
        own_host: own_host.to_bits(),
        hosts: hosts.len() as u32,
        host,
    })
}
