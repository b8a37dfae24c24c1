//! Control groups of the kernel, version 1 (`Documentation/admin-guide/cgroup-v1`) and version 2
//! (`Documentation/admin-guide/cgroup-v2.rst`).

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Access, access};

use super::Share;
use super::share::{HeldShare, PERIOD_US};
use crate::limits::{cgroup_paths, groups_around};
use crate::owned::OwnedFolder;

/// Beginning of the names of groups.
const PREFIX: &str = "pubgauge-";

/// The control groups of this machine, as this process sees them.
pub(super) struct Cgroups {
    /// Where they are mounted.
    root: PathBuf,
    /// Which ones this process is in: `/proc/self/cgroup`.
    membership: String,
}

/// A group, removed when this is dropped.
#[derive(Debug)]
pub(crate) struct ControlGroup {
    folder: OwnedFolder,
}

impl ControlGroup {
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Sets the quota of processor time, or lifts it, where the group has one.
    pub(super) fn limit(&self, cores: Option<f64>) {
        let quota = cores.map(|cores| quota_us(cores).to_string());
        let one = quota.clone().unwrap_or("-1".into());
        let two = format!("{} {PERIOD_US}", quota.unwrap_or("max".into()));
        for (name, text) in [("cpu.cfs_quota_us", one), ("cpu.max", two)] {
            let path = self.path().join(name);
            if path.exists() {
                // It could be written when the group was made.
                let _ = std::fs::write(path, text);
            }
        }
    }

    /// Its folder, and the file through which a process enters it, as paths for system calls.
    pub fn names(&self) -> [CString; 2] {
        let name = |path: &Path| CString::new(path.as_os_str().as_bytes()).unwrap_or_default();
        [name(self.path()), name(&self.path().join("cgroup.procs"))]
    }
}

/// How each part of a share is held, or why it is not.
pub(super) struct Tries {
    pub cores: Result<String, String>,
    pub memory: Result<String, String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One = 1,
    Two = 2,
}

/// One part of a share: the controller that limits it, and the group that a new one is made in.
struct Controller {
    controller: &'static str,
    version: Version,
    /// The group that a new one is made in.
    parent: PathBuf,
}

impl Cgroups {
    pub fn of_this_process() -> Cgroups {
        Cgroups {
            root: "/sys/fs/cgroup".into(),
            membership: std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default(),
        }
    }

    #[cfg(test)]
    pub fn from_membership(root: &Path, membership: &str) -> Cgroups {
        Cgroups {
            root: root.to_owned(),
            membership: membership.to_owned(),
        }
    }

    /// Makes the groups that hold a share.
    pub fn hold(&self, share: &Share, groups: &mut Vec<ControlGroup>) -> Tries {
        let mut one = |controller| {
            let part = self.parent_group(controller, share)?;
            part.hold(share, groups)
        };
        Tries {
            cores: one("cpu"),
            memory: one("memory"),
        }
    }

    /// How a share would be held, without making groups.
    pub fn foresee(&self, share: &Share) -> HeldShare {
        let mut held = HeldShare::default();
        if share.cores.is_some() {
            match self.parent_group("cpu", share) {
                Ok(part) => {
                    held.cores_by = Some(part.describe());
                    held.cores_by_quota = true;
                }
                Err(why) => held.not_held.push(format!("cores as a quota: {why}")),
            }
        }
        if share.memory_bytes.is_some() {
            match self.parent_group("memory", share) {
                Ok(part) => held.memory_by = Some(part.describe()),
                Err(why) => held.not_held.push(format!("memory: {why}")),
            }
        }
        held
    }

    /// The group that one with this controller may be made in.
    fn parent_group(&self, controller: &'static str, share: &Share) -> Result<Controller, String> {
        let (version, parent) = match self.version_one(controller) {
            Some(parent) => {
                writable(&parent, &[])?;
                (Version::One, parent)
            }
            None => (Version::Two, self.version_two(controller, share)?),
        };
        Ok(Controller {
            controller,
            version,
            parent,
        })
    }

    /// This process's group in the hierarchy of a controller of version 1.
    fn version_one(&self, controller: &str) -> Option<PathBuf> {
        let (root, own) = cgroup_paths(&self.membership, controller, &self.root)
            .into_iter()
            .find(|(root, _)| *root != self.root)?;
        let mut around = groups_around(&root, &own).into_iter();
        around.find(|folder| folder.join("cgroup.procs").exists())
    }

    /// The nearest group of version 2, this process's own or one around it, that enables all
    /// controllers of the share for its children and is writable.
    fn version_two(&self, controller: &str, share: &Share) -> Result<PathBuf, String> {
        let unified = [self.root.clone(), self.root.join("unified")]
            .into_iter()
            .find(|root| root.join("cgroup.controllers").exists())
            .ok_or_else(|| format!("no control group with `{controller}` is mounted"))?;
        let (_, own) = cgroup_paths(&self.membership, controller, &self.root)
            .into_iter()
            .find(|(root, _)| *root == self.root)
            .unwrap_or_default();
        let hands_on = |folder: &Path, controller: &str| {
            let text = std::fs::read_to_string(folder.join("cgroup.subtree_control"));
            text.is_ok_and(|text| text.split_whitespace().any(|word| word == controller))
        };
        // A process is in one group of version 2: both parts must be limited by the same group.
        let needed = [
            Some(controller),
            share.cores.map(|_| "cpu"),
            share.memory_bytes.map(|_| "memory"),
        ];
        let all = |folder: &PathBuf| needed.iter().flatten().all(|one| hands_on(folder, one));
        let mut why = format!(
            "no control group around this process hands on `{controller}` \
             (cgroup.subtree_control below {})",
            unified.display()
        );
        for folder in groups_around(&unified, &own).into_iter().filter(all) {
            match writable(&folder, &["cgroup.procs"]) {
                Ok(()) => return Ok(folder),
                Err(refused) => why = refused,
            }
        }
        Err(why)
    }
}

/// The quota of a period, in microseconds.
fn quota_us(cores: f64) -> u64 {
    (cores * PERIOD_US as f64).round() as u64
}

/// Checks that groups may be made in a folder, and that its files `names` can be written.
fn writable(folder: &Path, names: &[&str]) -> Result<(), String> {
    let files = names.iter().map(|name| folder.join(name));
    for path in std::iter::once(folder.to_owned()).chain(files) {
        access(&path, Access::WRITE_OK).map_err(|errno| refused(&path, &io::Error::from(errno)))?;
    }
    Ok(())
}

fn refused(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}

impl Controller {
    fn describe(&self) -> String {
        let quota = match self.controller {
            "cpu" => ", a quota for each 10 ms",
            _ => "",
        };
        format!("cgroup version {}{quota}", self.version as u8)
    }

    /// Files, what is written to them, and whether that must succeed (optional ones last).
    fn files(&self, share: &Share) -> Vec<(&'static str, String, bool)> {
        let quota = share.cores.map_or(0, quota_us);
        let bytes = share.memory_bytes.unwrap_or(0).to_string();
        match (self.controller, self.version) {
            ("cpu", Version::One) => vec![
                ("cpu.cfs_period_us", PERIOD_US.to_string(), true),
                ("cpu.cfs_quota_us", quota.to_string(), true),
            ],
            ("cpu", Version::Two) => vec![("cpu.max", format!("{quota} {PERIOD_US}"), true)],
            (_, Version::One) => vec![
                ("memory.limit_in_bytes", bytes.clone(), true),
                // Memory and swap together: no swap, where the kernel counts it.
                ("memory.memsw.limit_in_bytes", bytes, false),
            ],
            (_, Version::Two) => vec![
                ("memory.max", bytes, true),
                ("memory.swap.max", "0".into(), false),
            ],
        }
    }

    fn hold(&self, share: &Share, groups: &mut Vec<ControlGroup>) -> Result<String, String> {
        let wanted = match self.controller {
            "cpu" => share.cores.is_some(),
            _ => share.memory_bytes.is_some(),
        };
        if !wanted {
            return Err("not asked for".into());
        }
        // In version 2 one group limits both.
        let known = |group: &&ControlGroup| {
            self.version == Version::Two && group.path().parent() == Some(&*self.parent)
        };
        let new = match groups.iter().find(known) {
            Some(group) => return self.write(group, share),
            None => OwnedFolder::create_removed_by(&self.parent, PREFIX, remove)
                .map_err(|error| refused(&self.parent, &error))?,
        };
        let group = ControlGroup { folder: new };
        let words = self.write(&group, share)?;
        groups.push(group);
        Ok(words)
    }

    fn write(&self, group: &ControlGroup, share: &Share) -> Result<String, String> {
        for (name, text, required) in self.files(share) {
            let path = group.path().join(name);
            if let (Err(error), true) = (std::fs::write(&path, text), required) {
                return Err(refused(&path, &error));
            }
        }
        Ok(self.describe())
    }
}

/// Removes a group, and those that its processes made in it. Waits up to 0.2 s for each while its
/// processes are ending.
fn remove(group: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(group)?.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path())?;
        }
    }
    for _ in 0..100 {
        match std::fs::remove_dir(group) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                std::thread::sleep(Duration::from_millis(2));
            }
            done => return done,
        }
    }
    std::fs::remove_dir(group)
}
