//! Pods that collect: what one of the manifest runs is run. Needs Python with PyYAML (`make deps` installs it below target).

use std::process::Command;

use serde_json::Value;

use super::*;

/// The documents of the manifest that collects.
fn collectors() -> Vec<Value> {
    let python = repository("target/tools/python/bin/python");
    let script = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(sys.stdin))))";
    let manifest = std::fs::File::open(repository("docs/kubernetes-collect.yaml")).unwrap();
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
    let place = new_place();
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
    pod.wait_for_end();
    publish("30");
    let mut pod = place.start(&args);
    pod.until_said("\"session_present\":true");
    let found = || place.run(&["verify", "data", "--json"]).out;
    pod.until("50 messages", || {
        let found: Value = serde_json::from_str(&found()).unwrap();
        found["messages"].as_u64().unwrap() + found["messages_in_log"].as_u64().unwrap() >= 50
    });
    pod.signal(libc::SIGTERM);
    pod.wait_for_end().exits(0);
    assert!(place.path_to("data/collectors/pubgauge-collect-0").is_dir());
}
