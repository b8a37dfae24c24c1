//! Who the clients of a flow are to the system, as it is written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who the clients of a flow are to the system: identifiers, users, passwords, certificates. A password itself never
/// stands in a study.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct IdentitiesFile {
    /// Its publishers; with made-up names and the login of the command line if absent.
    pub publishers: Option<IdentityFile>,
    /// Its subscribers, likewise.
    pub subscribers: Option<IdentityFile>,
}

/// The identities of one side of a flow. In the names of files and variables `{n}` is the client's number among these,
/// from 0, `{id}` its identifier and `{user}` its user.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct IdentityFile {
    /// Client identifier, such as "meter-{n}"; made up if absent.
    pub client_id: Option<String>,
    /// User name, such as "meter-{n}"; as of the address if absent.
    pub user: Option<String>,
    /// Variable of the environment with the password, such as "METER_{n}"; as of the command line if absent.
    pub password_variable: Option<String>,
    /// File with the password, such as "passwords/{user}", in place of a variable.
    pub password_file: Option<String>,
    /// CSV file with headings and a row for each client, in place of the keys above: id, user, and password,
    /// password-file or password-variable.
    pub from: Option<String>,
    /// Folder with a certificate for each client, NAME.pem, and its private key, NAME.key or in the same file: NAME is
    /// the client's identifier, else its user. With a placeholder, such as "keys/{n}", that is the file without its ending.
    pub certs: Option<String>,
}
