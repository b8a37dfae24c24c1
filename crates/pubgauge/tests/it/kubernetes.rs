//! The manifests of the documentation are valid in every field. Pods as hosts: a run on pods works with what kubectl does
//! with them, in network namespaces. Needs root, `ip`, and kubernetes-validate
//! (`make deps` installs it below target).

use crate::common;

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use common::hosts::{Hosts, flags, paced};
use common::*;

const MANIFESTS: [&str; 2] = ["docs/kubernetes.yaml", "docs/kubernetes-collect.yaml"];

#[test]
fn the_manifests_are_valid() {
    let validator = repository("target/tools/python/bin/kubernetes-validate");
    assert!(
        validator.exists(),
        "no {}; make deps installs it",
        validator.display()
    );
    // With and before the newest versions that are in use.
    for version in ["1.29", "1.37"] {
        let mut command = Command::new(&validator);
        command
            .args(["--strict", "-k", version])
            .args(MANIFESTS.map(repository));
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{version}: {said}");
    }
}

/// In the place of kubectl: `exec -i POD -- COMMAND` runs the command on the pod's host, without standard input if -i is not
/// said, with the exit code and the words that kubectl has where there is no such pod.
fn kubectl(place: &Place, hosts: &Hosts) -> String {
    let mut script = String::from(
        "#!/bin/sh\n[ \"$1\" = exec ] || exit 1\nshift\nif [ \"$1\" = -i ]; then shift; else exec </dev/null; fi\npod=$1\nshift 2\ncase $pod in\n",
    );
    for rank in 0..hosts.names.len() {
        script += &format!("pubgauge-{rank}) exec {} \"$@\" ;;\n", hosts.prefix(rank));
    }
    script +=
        "esac\necho \"Error from server (NotFound): pods \\\"$pod\\\" not found\" >&2\nexit 1\n";
    std::fs::create_dir(place.path_to("bin")).unwrap();
    let program = place.write("bin/kubectl", script);
    std::fs::set_permissions(program, PermissionsExt::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    format!("{}:{path}", place.path_to("bin").display())
}

#[test]
fn a_run_on_pods() {
    let place = Place::new();
    let hosts = Hosts::make(3, 12);
    let path = kubectl(&place, &hosts);
    let run = |out: &str, prefixes: &[&str]| {
        let mut all = flags(&hosts.own.to_string(), prefixes);
        all.extend(["--duration", "1s", "--warm-up", "200ms"].map(str::to_owned));
        let mut command = place.command(&paced(out, &all));
        command.env("PATH", &path);
        place.finish(command)
    };
    let pods = [
        "kubectl exec -i pubgauge-0 --",
        "kubectl exec -i pubgauge-1 --",
    ];
    let done = run("run", &pods);
    done.ran_to_its_end();
    let trial = place.trial("run");
    adds_up(&trial);
    let names = trial["hosts"].as_array().unwrap().iter();
    let names = names.map(|host| &host["name"]).collect::<Vec<_>>();
    assert_eq!(names, ["node-0", "node-1"]);

    let missing = run("missing", &["kubectl exec -i pubgauge-7 --"]).exits(2);
    missing.assert_says("pods \"pubgauge-7\" not found");
    let deaf = run("deaf", &["kubectl exec pubgauge-0 --"]).exits(2);
    deaf.assert_says("standard input on (kubectl exec -i)");
    assert!(!place.path_to("missing").exists() && !place.path_to("deaf").exists());
    place.has_no_process_soon();
    place.is_clean();
}
