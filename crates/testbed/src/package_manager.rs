//! Package managers, by which systems are installed.

use serde::Serialize;

/// The commands of one package manager.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InstallCommands {
    /// The package manager.
    pub manager: String,
    /// The commands, to be executed in this order.
    pub commands: Vec<String>,
}

/// The program of a package manager.
pub(crate) fn manager_tool(manager: &str) -> &str {
    match manager {
        "apt" => "apt-get",
        other => other,
    }
}
