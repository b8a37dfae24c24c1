//! Who clients are to the system, from the study file to plain data: patterns filled in, lists and secrets read.

use std::collections::HashMap;
use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pubgauge_driver::{OwnCertificate, Secret};
use pubgauge_workload::identity::{Identity, IdentityRow, PasswordSource, read_list};
use pubgauge_workload::{Device, Flow};

use super::traces::substituted;
use crate::clash::Clashes;
use crate::file::{IdentitiesFile, IdentityFile};

/// Largest list of identities, bytes: a million rows of 64 bytes.
const MOST_LIST: u64 = 64 << 20;
/// Largest file with a password, bytes.
const MOST_PASSWORD: u64 = 64 << 10;
/// Largest file with certificates or a key, bytes.
const MOST_PEM: u64 = 1 << 20;

/// The tables of the two sides of a flow.
const SIDES: [&str; 2] = ["publishers", "subscribers"];

/// Gives the publishers and subscribers of a flow, which are these devices, their identities. Relative paths start from
/// `folder`.
pub(super) fn give(
    file: &IdentitiesFile,
    sides: &[Vec<u32>; 2],
    devices: &mut [Device],
    folder: &Path,
    clashes: &mut Clashes<'_>,
) {
    let written = [&file.publishers, &file.subscribers];
    for ((side, file), numbers) in SIDES.iter().zip(written).zip(sides) {
        let Some(file) = file else { continue };
        let mut clashes = clashes.below(&["identities", side]);
        if numbers.is_empty() {
            clashes.add("", format!("this flow has no {side}"));
            continue;
        }
        let made = Maker { file, folder }.identities(numbers.len(), &mut clashes);
        for (number, identity) in numbers.iter().zip(made) {
            let device = &mut devices[*number as usize];
            match &device.identity {
                Some(other) if **other != identity => {
                    let message = format!(
                        "connection `{}` has two identities: {}, and {}; a connection has one",
                        device.name,
                        other.describe(),
                        identity.describe()
                    );
                    let hint = "give the identities of shared connections (`publish-as`, `subscribe-as`) once";
                    return clashes.hinted("", message, Some(hint.into()));
                }
                _ => device.identity = Some(Box::new(identity)),
            }
        }
    }
}

/// Checks that no two clients of a workload have one identifier: a server keeps one connection of each.
pub(super) fn check_unique(devices: &[Device], flows: &[Flow], clashes: &mut Clashes<'_>) {
    let mut known: HashMap<&str, &Device> = HashMap::new();
    for (number, device) in (0..).zip(devices) {
        let Some(id) = device.identity.as_ref().and_then(|own| own.id.as_deref()) else {
            continue;
        };
        let Some(first) = known.insert(id, device) else {
            continue;
        };
        let uses = |flow: &Flow| {
            let publishes = flow.publishers.iter().any(|p| p.device == number);
            let subscribes = flow.subscribers.iter().any(|s| s.device == number);
            [publishes, subscribes].iter().position(|uses| *uses)
        };
        let place = flows
            .iter()
            .zip(0..)
            .find_map(|(flow, nth)| Some((nth, uses(flow)?)));
        let (flow, side): (usize, usize) = place.unwrap_or_default();
        clashes.hinted(
            &format!("flow.{flow}.identities.{}", SIDES[side]),
            format!(
                "client identifier `{id}` is that of connection `{}` and of `{}`; a server takes one connection of each",
                first.name, device.name
            ),
            Some("give each side and each flow identifiers of its own, or let flows share connections (`publish-as`, `subscribe-as`)".into()),
        );
        return;
    }
}

/// A fault of one client's identity: the key to point at, the message, and a hint.
type Fault = (&'static str, String, Option<String>);

/// Makes the identities of one side of a flow.
struct Maker<'a> {
    file: &'a IdentityFile,
    folder: &'a Path,
}

impl Maker<'_> {
    /// The identities of so many clients; none if anything is wrong, which is added to `clashes`.
    fn identities(&self, clients: usize, clashes: &mut Clashes<'_>) -> Vec<Identity> {
        let before = clashes.found.len();
        self.check_keys(clients, clashes);
        if clashes.found.len() > before {
            return Vec::new();
        }
        let made = match &self.file.from {
            Some(list) => self.listed(list, clients),
            None => (0..clients).map(|n| self.by_pattern(n)).collect(),
        };
        let made = made.and_then(|made| {
            let each = made.into_iter().enumerate();
            each.map(|(n, identity)| self.certified(n, identity))
                .collect()
        });
        made.unwrap_or_else(|(key, message, hint)| {
            clashes.hinted(key, message, hint);
            Vec::new()
        })
    }

    fn check_keys(&self, clients: usize, clashes: &mut Clashes<'_>) {
        let file = self.file;
        let keys = [
            ("client-id", &file.client_id),
            ("user", &file.user),
            ("password-variable", &file.password_variable),
            ("password-file", &file.password_file),
        ];
        for (key, given) in keys {
            if file.from.is_some() && given.is_some() {
                let message = format!("`from` and `{key}` exclude one another: the list says it");
                clashes.add(key, message);
            }
            if given.as_ref().is_some_and(|text| text.trim().is_empty()) {
                clashes.add(key, format!("`{key}` is empty; leave it out, or name one"));
            }
        }
        if file.password_variable.is_some() && file.password_file.is_some() {
            let message = "a password comes from a variable or from a file, not from both";
            clashes.add("password-file", message);
        }
        if *file == IdentityFile::default() {
            let hint = "client-id, user, password-variable, password-file, from and certs do";
            clashes.hinted(
                "",
                "this says nothing of who the clients are",
                Some(hint.into()),
            );
        }
        if clients > 1
            && file
                .client_id
                .as_ref()
                .is_some_and(|id| !id.contains("{n}"))
        {
            clashes.hinted(
                "client-id",
                format!("{clients} clients would have one identifier, and a server takes one connection of each"),
                Some("put {n} into it, which is the client's number from 0".into()),
            );
        }
        for (key, given, known) in [
            ("client-id", &file.client_id, &["{n}"][..]),
            ("user", &file.user, &["{n}"]),
            ("password-variable", &file.password_variable, &ALL),
            ("password-file", &file.password_file, &ALL),
            ("certs", &file.certs, &ALL),
        ] {
            let text = given.as_deref().unwrap_or_default();
            if let Some(unknown) = placeholders(text).find(|one| !known.contains(one)) {
                let hint = format!("there is {}", known.join(", "));
                clashes.hinted(key, format!("`{unknown}` stands for nothing"), Some(hint));
            }
        }
    }

    fn by_pattern(&self, n: usize) -> Result<Identity, Fault> {
        let file = self.file;
        let number = |text: &String| text.replace("{n}", &n.to_string());
        let identity = Identity {
            id: file.client_id.as_ref().map(number),
            user: file.user.as_ref().map(number),
            ..Identity::default()
        };
        let password = match (&file.password_variable, &file.password_file) {
            (Some(variable), _) => {
                let variable = filled(variable, n, &identity, "password-variable")?;
                let read = of_variable(&variable);
                Some(read.map_err(|why| ("password-variable", why, None))?)
            }
            (None, Some(path)) => {
                let path = filled(path, n, &identity, "password-file")?;
                let read = self.of_file(self.folder, &path);
                Some(read.map_err(|why| ("password-file", why, None))?)
            }
            (None, None) => None,
        };
        Ok(Identity {
            password,
            ..identity
        })
    }

    fn listed(&self, list: &str, clients: usize) -> Result<Vec<Identity>, Fault> {
        let fault = |why: String, hint: Option<String>| ("from", why, hint);
        let path = path_of(self.folder, list).map_err(|why| fault(why, None))?;
        let shown = path.display();
        let text = read(&path, MOST_LIST).map_err(|why| {
            fault(
                why,
                Some("a CSV file with the headings id,user,password-variable".into()),
            )
        })?;
        let rows = read_list(&text, clients);
        let rows = rows.map_err(|error| fault(format!("{shown}:{error}"), error.hint.clone()))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let row = |row: IdentityRow| {
            let password = match row.password {
                None => Ok(None),
                Some(PasswordSource::Given(password)) => Ok(Some(Secret::new(password))),
                Some(PasswordSource::File(file)) => self.of_file(folder, &file).map(Some),
                Some(PasswordSource::Variable(name)) => of_variable(&name).map(Some),
            };
            let line = row.line;
            Ok(Identity {
                id: row.id,
                user: row.user,
                password: password.map_err(|why| fault(format!("{shown}:{line}: {why}"), None))?,
                certificate: None,
            })
        };
        rows.into_iter().map(row).collect()
    }

    /// The password in a file, without its line end.
    fn of_file(&self, folder: &Path, path: &str) -> Result<Secret, String> {
        let path = path_of(folder, path)?;
        let text = read(&path, MOST_PASSWORD)?;
        match text.trim_end_matches(['\r', '\n']) {
            "" => Err(format!(
                "`{}` is empty: there is no password in it",
                path.display()
            )),
            password => Ok(Secret::new(password)),
        }
    }

    /// An identity with its certificate, if there are some.
    fn certified(&self, n: usize, identity: Identity) -> Result<Identity, Fault> {
        let Some(certs) = &self.file.certs else {
            return Ok(identity);
        };
        let pattern = if placeholders(certs).next().is_some() {
            certs.clone()
        } else if identity.id.is_some() {
            format!("{certs}/{{id}}")
        } else if identity.user.is_some() {
            format!("{certs}/{{user}}")
        } else {
            let hint =
                "certificates are named by client identifiers or users; or say \"FOLDER/{n}\"";
            let message = "these clients have neither client identifiers nor users".into();
            return Err(("certs", message, Some(hint.into())));
        };
        let stem = filled(&pattern, n, &identity, "certs")?;
        let certificate = certificate(self.folder, &stem).map_err(|why| {
            let shown = identity.describe();
            let whose = if shown.is_empty() { String::new() } else { format!(" ({shown})") };
            let hint = "expected PEM: the certificate in NAME.pem, its private key in NAME.key or in the same file";
            ("certs", format!("client {n}{whose}: {why}"), Some(hint.to_owned()))
        })?;
        Ok(Identity {
            certificate: Some(Arc::new(certificate)),
            ..identity
        })
    }
}

/// Placeholders that names of files and variables may have.
const ALL: [&str; 3] = ["{n}", "{id}", "{user}"];

/// The placeholders of a text; not variables of the environment, `${NAME}`.
fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('{').filter_map(move |(at, _)| {
        let end = text[at..].find('}')?;
        (!text[..at].ends_with('$')).then(|| &text[at..=at + end])
    })
}

/// A text with its placeholders filled in. What an identity puts into it stays one name: no part of a path.
fn filled(text: &str, n: usize, identity: &Identity, key: &'static str) -> Result<String, Fault> {
    let mut done = text.replace("{n}", &n.to_string());
    for (placeholder, what, value) in [
        ("{id}", "client identifier", &identity.id),
        ("{user}", "user", &identity.user),
    ] {
        if !done.contains(placeholder) {
            continue;
        }
        let Some(value) = value else {
            let message =
                format!("`{placeholder}` stands for nothing: these clients have no {what}");
            return Err((key, message, None));
        };
        if value.contains('/') || value.starts_with('.') {
            let message = format!("the {what} `{value}` cannot be part of a file's name");
            return Err((key, message, Some("name files by {n}".into())));
        }
        done = done.replace(placeholder, value);
    }
    Ok(done)
}

fn of_variable(name: &str) -> Result<Secret, String> {
    let none = || {
        format!(
            "the environment variable `{name}` is not set, or empty: there is no password in it"
        )
    };
    // A name that no variable can have is none that is set.
    let sound = !name.is_empty() && !name.contains(['=', '\0']);
    let text = sound.then(|| env::var(name).ok()).flatten();
    let text = text.filter(|text| !text.is_empty());
    text.map(Secret::new).ok_or_else(none)
}

/// The certificate and the key of one client, whose files are named so but for their endings.
fn certificate(folder: &Path, stem: &str) -> Result<OwnCertificate, String> {
    let file = path_of(folder, &format!("{stem}.pem"))?;
    let mut pem = read(&file, MOST_PEM)?;
    if !pem.contains("-----BEGIN CERTIFICATE-----") {
        return Err(format!("there is no certificate in `{}`", file.display()));
    }
    let key_file = path_of(folder, &format!("{stem}.key"))?;
    if fs::exists(&key_file).unwrap_or(true) {
        pem.push('\n');
        pem.push_str(&read(&key_file, MOST_PEM)?);
    }
    if !pem.contains("PRIVATE KEY-----") {
        let (file, key_file) = (file.display(), key_file.display());
        return Err(format!(
            "there is no private key in `{file}`, nor in `{key_file}`"
        ));
    }
    let pem = Secret::new(pem);
    Ok(OwnCertificate { file, pem })
}

/// A path of a study, `${NAME}` in it replaced by the environment.
fn path_of(folder: &Path, path: &str) -> Result<PathBuf, String> {
    let path = folder.join(substituted(path)?);
    std::path::absolute(&path).map_err(|error| format!("`{}`: {error}", path.display()))
}

/// The text of a regular file of at most `most` bytes.
fn read(path: &Path, most: u64) -> Result<String, String> {
    let shown = path.display();
    let fault = |error: std::io::Error| format!("`{shown}`: {error}");
    // A pipe would be waited for.
    if !fs::metadata(path).map_err(fault)?.is_file() {
        return Err(format!("`{shown}` is not a file"));
    }
    let bytes = pubgauge_place::content(&File::open(path).map_err(fault)?, most).map_err(fault)?;
    // The bytes themselves may be a secret.
    String::from_utf8(bytes).map_err(|_| format!("`{shown}` is no UTF-8 text"))
}
