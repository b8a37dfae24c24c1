//! The other hosts of a run, as the arguments name them.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

use pubgauge_command::exit::Ending;
use pubgauge_hosts::{Host, Hosts, read_hosts};
use pubgauge_results::store;

use crate::args::HostsArgs;

/// The longest file of hosts, bytes: 1 MiB, some thousands of them.
const LONGEST_FILE: u64 = 1 << 20;

/// The other hosts that the arguments name; nothing is started there yet. `None`: the workers are on this host.
///
/// # Errors
/// Bad input: a command or a file that names no host.
pub fn from_args(args: &HostsArgs) -> Result<Option<Arc<Hosts>>, Ending> {
    let (true, Some(at)) = (args.are_given(), args.at) else {
        return Ok(None);
    };
    if at.is_unspecified() {
        return Err(Ending::bad_input(format!(
            "--at {at}: expected the address of one interface of this host, which the others reach"
        )));
    }
    let program = args.host_program.as_deref();
    let hosts = match &args.hosts {
        Some(file) => from_file(file, program)?,
        None => {
            let hosts = args.host.iter().map(|text| Host::new(text, program));
            let hosts = hosts.collect::<Result<Vec<_>, _>>();
            hosts.map_err(|error| Ending::bad_input(format!("--load-host {error}")))?
        }
    };
    Ok(Some(Arc::new(Hosts::new(hosts, at))))
}

fn from_file(file: &Path, program: Option<&str>) -> Result<Vec<Host>, Ending> {
    let failed =
        |error: &dyn Display| Ending::bad_input(format!("--hosts {}: {error}", file.display()));
    let text = store::read_text(file, LONGEST_FILE).map_err(|e| failed(&e))?;
    let hosts = read_hosts(&text, program).map_err(|error| failed(&error))?;
    if hosts.is_empty() {
        Err(failed(&"there is no [[host]] in it"))
    } else {
        Ok(hosts)
    }
}
