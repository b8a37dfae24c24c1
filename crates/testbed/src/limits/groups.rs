//! The control groups around this process, where they can be seen (cgroups(7), proc_pid_mountinfo(5)).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

/// Where hierarchies of control groups are mounted by custom.
const MOUNT: &str = "/sys/fs/cgroup";

/// The folders of this process's control groups that limit a resource, and of those around them, from the inside out.
pub(super) fn groups_here(controller: &str) -> Vec<PathBuf> {
    let membership = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    match std::fs::read_to_string("/proc/self/mountinfo") {
        Ok(mounts) => groups(&membership, &mounts, controller),
        Err(_) => cgroup_paths(&membership, controller, Path::new(MOUNT))
            .iter()
            .flat_map(|(root, own)| groups_around(root, own))
            .collect(),
    }
}

/// Groups by the texts of `/proc/self/cgroup` and `/proc/self/mountinfo`. A folder comes once, however often its
/// hierarchy is mounted.
fn groups(membership: &str, mountinfo: &str, controller: &str) -> Vec<PathBuf> {
    let mounts: Vec<Mount> = mountinfo.lines().filter_map(Mount::parse).collect();
    let mut found = Vec::new();
    for line in membership.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(own)) = (fields.next(), fields.next()) else {
            continue;
        };
        let is_unified = controllers.is_empty();
        if !is_unified && controllers.split(',').all(|one| one != controller) {
            continue;
        }
        let mut of_hierarchy = mounts.iter().filter(|mount| match &mount.controllers {
            Some(all) => !is_unified && all.iter().any(|one| one == controller),
            None => is_unified,
        });
        // Mounts of one hierarchy may show parts of it; the first that shows this process's group is as good as any.
        if let Some(own) = of_hierarchy.find_map(|mount| Some((mount, mount.folder(own)?))) {
            let (mount, own) = own;
            found.extend(groups_around(&mount.at, &own));
        }
    }
    found
}

/// The folder of a group in the hierarchy at `root`, and those of the groups around it.
pub(crate) fn groups_around(root: &Path, own: &str) -> Vec<PathBuf> {
    // Without the slash at the end that nothing, joined, leaves.
    let own: PathBuf = root
        .join(own.trim_start_matches('/'))
        .components()
        .collect();
    // A container may not see the folders above its own, nor its own under its full name.
    let around = own
        .ancestors()
        .take_while(|folder| folder.starts_with(root));
    around.map(Path::to_path_buf).collect()
}

/// The roots of the hierarchies that limit `controller`, and the process's path in each: the
/// unified one (`0::/a/b`), and the controller's own (`4:memory:/a/b`), all mounted below `mount`.
pub(crate) fn cgroup_paths(
    membership: &str,
    controller: &str,
    mount: &Path,
) -> Vec<(PathBuf, String)> {
    let mut paths = Vec::new();
    for line in membership.lines() {
        let mut fields = line.splitn(3, ':');
        let (_, Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        if controllers.is_empty() {
            paths.push((mount.to_owned(), path.to_owned()));
        } else if controllers.split(',').any(|c| c == controller) {
            paths.push((mount.join(controller), path.to_owned()));
        }
    }
    paths
}

/// A mounted hierarchy of control groups.
struct Mount {
    /// The group that it shows at its root, as this process names groups.
    shown: PathBuf,
    at: PathBuf,
    /// The controllers of version 1; `None`: version 2, which has all.
    controllers: Option<Vec<String>>,
}

impl Mount {
    /// A line such as `36 35 0:30 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu`; `None` for other
    /// file systems.
    fn parse(line: &str) -> Option<Mount> {
        let (mount, system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let (shown, at) = (unescaped(mount.next()?), unescaped(mount.next()?));
        let mut system = system.split(' ');
        let controllers = match system.next()? {
            "cgroup" => Some(system.nth(1)?.split(',').map(str::to_owned).collect()),
            "cgroup2" => None,
            _ => return None,
        };
        Some(Mount {
            shown,
            at,
            controllers,
        })
    }

    /// The path of a group below this mount; `None` where it is not below what the mount shows.
    fn folder(&self, own: &str) -> Option<String> {
        let own = Path::new(own);
        let goes_up = |path: &Path| path.components().any(|c| c == Component::ParentDir);
        if let Ok(below) = own.strip_prefix(&self.shown) {
            return (!goes_up(below)).then(|| below.to_string_lossy().into_owned());
        }
        // The root of a namespace of control groups is `/`, and a mount from outside shows a group around it, `/..`:
        // what leads from there to this process has no name here.
        let mut outside = self.shown.components().skip(1).peekable();
        let is_around = outside.peek().is_some() && outside.all(|c| c == Component::ParentDir);
        (is_around && !goes_up(own)).then(String::new)
    }
}

/// A path as it is: `mountinfo` has `\040` for a blank.
fn unescaped(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let octal = (after.get(..3))
            .filter(|_| *first == b'\\')
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(octal.unwrap_or(*first));
        rest = if octal.is_some() { &after[3..] } else { after };
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
        32 31 0:29 ROOT /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
        35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    /// Folders around a process in the group `own` of the controller `cpu`, in a hierarchy that shows `root`.
    fn around(root: &str, own: &str) -> Vec<String> {
        let membership = format!("4:memory:/elsewhere\n3:cpu,cpuacct:{own}\nnonsense\n0::/\n");
        let found = groups(&membership, &V1.replace("ROOT", root), "cpu");
        let texts = found.iter().map(|path| path.to_string_lossy().into_owned());
        texts.collect()
    }

    #[test]
    fn a_group_is_found_wherever_its_hierarchy_is_mounted() {
        let at = "/sys/fs/cgroup/cpu,cpuacct";
        let inside = |names: &[&str]| -> Vec<String> {
            let own = names.iter().map(|name| format!("{at}{name}"));
            own.chain(["/sys/fs/cgroup/unified".to_owned()]).collect()
        };
        assert_eq!(around("/", "/a/b"), inside(&["/a/b", "/a", ""]));
        // A container sees its own group as the root, under its full name or none, and groups that it made itself.
        assert_eq!(around("/docker/7f", "/docker/7f"), inside(&[""]));
        assert_eq!(around("/docker/7f", "/docker/7f/in"), inside(&["/in", ""]));
        assert_eq!(around("/", "/"), inside(&[""]));
        assert_eq!(around("/..", "/../x"), inside(&["/x", ""]));
        // The mount is from outside of the namespace.
        assert_eq!(around("/../..", "/"), inside(&[""]));
    }

    #[test]
    fn a_group_that_cannot_be_seen_is_not_taken_for_another() {
        let unified = ["/sys/fs/cgroup/unified"];
        // A process that was moved out of its namespace, and one beside the group that is mounted.
        assert_eq!(around("/", "/.."), unified);
        assert_eq!(around("/", "/../x"), unified);
        assert_eq!(around("/docker/7f", "/docker/80"), unified);
    }

    #[test]
    fn odd_files_have_no_groups() {
        let line = "32 31 0:29 / /a\\040b/c rw - cgroup2 none rw";
        assert_eq!(
            groups("0::/d\n", line, "cpu"),
            [Path::new("/a b/c/d"), Path::new("/a b/c")]
        );
        for line in [
            "",
            "32 31 0:29 /",
            "1 2 3 4 5 - cgroup",
            "1 - cgroup2 x y",
            "\\04",
        ] {
            assert!(groups("0::/d\n3:cpu:/\n", line, "cpu").is_empty(), "{line}");
        }
        assert!(groups("0\n:\ncpu", V1, "cpu").is_empty());
    }

    #[test]
    fn where_cgroups_stand() {
        let membership = "4:memory,x:/a/b\n3:cpu:/c\n0::/user.slice/d\n";
        let paths = cgroup_paths(membership, "memory", Path::new("/sys/fs/cgroup"));
        let expected = [
            ("/sys/fs/cgroup/memory", "/a/b"),
            ("/sys/fs/cgroup", "/user.slice/d"),
        ];
        assert_eq!(
            paths,
            expected.map(|(root, path)| (PathBuf::from(root), path.to_owned()))
        );
    }

    #[test]
    fn this_process_is_in_groups_that_exist() {
        for folder in groups_here("cpu") {
            assert!(folder.starts_with("/"), "{folder:?}");
        }
    }
}
