//! The manifests of the documentation are valid in every field. Pods as hosts: a run on pods works with what kubectl does
//! with them, in network namespaces. Pods that collect: what one runs is run. Needs root, `ip`, and kubernetes-validate
//! (`make deps` installs it below target).

use crate::common;

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use pubgauge_testing::mosquitto::Mosquitto;

use serde_json::Value;

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

/// The documents of the manifest that collects.
fn collectors() -> Vec<Value> {
    let python = repository("target/tools/python/bin/python");
    let script = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(sys.stdin))))";
    let manifest = std::fs::File::open(repository(MANIFESTS[1])).unwrap();
    let mut command = Command::new(python);
    let output = command.args(["-c", script]).stdin(manifest).output();
    serde_json::from_slice(&output.unwrap().stdout).unwrap()
}

/// The command of a pod runs in a folder that plays its volume; the pod is killed, and made anew under its name.
#[test]
fn a_pod_that_collects_comes_back_to_its_session() {
    let documents = collectors();
    let of = |kind: &str| documents.iter().find(|one| one["kind"] == kind).unwrap();
    let broker = Mosquitto::start();
    let place = Place::new();
    let file = of("ConfigMap")["data"]["collect.toml"].as_str().unwrap();
    let file = file
        .replace("mqtt://brokers.example", &broker.address())
        .replace("\"/data\"", "\"data\"");
    place.write("collect.toml", file);
    let container = &of("StatefulSet")["spec"]["template"]["spec"]["containers"][0];
    let args: Vec<String> = container["args"]
        .as_array()
        .unwrap()
        .iter()
        .map(|arg| {
            let arg = arg.as_str().unwrap();
            arg.replace("/etc/pubgauge/", "")
                .replace("$(POD_NAME)", "pubgauge-collect-0")
                .replace("$(POD_IP):9464", "0")
        })
        .collect();
    let publish = |count: &str| {
        let port = broker.port.to_string();
        let mut command = Command::new("mosquitto_pub");
        command.args(["-p", &port, "-q", "1", "-t", "meters/1", "-m", "1"]);
        let done = command.args(["--repeat", count]).status().unwrap();
        assert!(done.success());
    };
    let mut pod = place.start(&args);
    pod.until_said("\"session_present\":false");
    publish("20");
    pod.signal(libc::SIGKILL);
    pod.ends();
    publish("30");
    let mut pod = place.start(&args);
    pod.until_said("\"session_present\":true");
    let found = || place.run(&["collect", "verify", "data", "--json"]).out;
    pod.until("50 messages", || {
        let found: Value = serde_json::from_str(&found()).unwrap();
        found["messages"].as_u64().unwrap() + found["messages_in_log"].as_u64().unwrap() >= 50
    });
    pod.signal(libc::SIGTERM);
    pod.ends().exits(0);
    assert!(place.at("data/collectors/pubgauge-collect-0").is_dir());
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
    std::fs::create_dir(place.at("bin")).unwrap();
    let program = place.write("bin/kubectl", script);
    std::fs::set_permissions(program, PermissionsExt::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    format!("{}:{path}", place.at("bin").display())
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
    missing.says("pods \"pubgauge-7\" not found");
    let deaf = run("deaf", &["kubectl exec pubgauge-0 --"]).exits(2);
    deaf.says("standard input on (kubectl exec -i)");
    assert!(!place.at("missing").exists() && !place.at("deaf").exists());
    place.has_no_process_soon();
    place.is_clean();
}
