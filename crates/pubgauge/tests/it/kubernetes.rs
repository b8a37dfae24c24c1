//! What a Kubernetes cluster is told to have: valid in every field, and run as its pods would run it, in network
//! namespaces. Needs root, `ip`, and kubernetes-validate (`make deps` installs it below target).

use crate::common;

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::hosts::{Agent, Hosts, listens, nothing_is_left, paced, token};
use common::servers::free_port;
use common::*;
use serde_json::Value;

const LENGTH: [&str; 4] = ["--duration", "1s", "--warm-up", "200ms"];

/// A program of the environment that kubernetes-validate is in.
fn validator(name: &str) -> PathBuf {
    let path = repository("target/tools/python/bin").join(name);
    assert!(
        path.exists(),
        "no {}; make deps installs it",
        path.display()
    );
    path
}

/// Runs a program on a text; what it says. It must end well.
#[track_caller]
fn said(of: &Path, arguments: &[&str], input: &str) -> String {
    let mut command = Command::new(of);
    command.args(arguments).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let mut theirs = process.stdin.take().unwrap();
    theirs.write_all(input.as_bytes()).unwrap();
    drop(theirs);
    let output = process.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let [said, wrong] = [&output.stdout, &output.stderr].map(|bytes| text(bytes));
    assert!(output.status.success(), "{said}{wrong}\n{input}");
    said
}

/// Secret, Service and Job, as a cluster reads them; all valid, without a field that is unknown.
#[track_caller]
fn valid(place: &Place, yaml: &str) -> [Value; 3] {
    let file = place.write("manifests.yaml", yaml);
    // With and before the newest versions that are in use.
    for version in ["1.29", "1.37"] {
        let arguments = ["--strict", "-k", version, file.to_str().unwrap()];
        said(&validator("kubernetes-validate"), &arguments, "");
    }
    std::fs::remove_file(file).unwrap();
    let read = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(sys.stdin))))";
    let json = said(&validator("python3"), &["-c", read], yaml);
    let objects: Vec<Value> = serde_json::from_str(&json).unwrap();
    let kinds: Vec<&Value> = objects.iter().map(|object| &object["kind"]).collect();
    assert_eq!(kinds, ["Secret", "Service", "Job"]);
    objects.try_into().unwrap()
}

/// Does on hosts what a cluster does with these objects: a pod for each index, with its part of the secret
/// alone and the container's arguments and environment.
fn pods(place: &Place, hosts: &Hosts, [secret, service, job]: &[Value; 3]) -> Vec<Agent> {
    let name = &job["metadata"]["name"];
    let spec = &job["spec"];
    assert_eq!(spec["completionMode"], "Indexed");
    assert_eq!(spec["parallelism"], spec["completions"]);
    let pod = &spec["template"]["spec"];
    let labels = &spec["template"]["metadata"]["labels"];
    assert_eq!(service["spec"]["selector"], *labels);
    assert_eq!(service["spec"]["clusterIP"], "None");
    assert_eq!(
        [&pod["subdomain"], &service["metadata"]["name"]],
        [name, name]
    );
    let container = &pod["containers"][0];
    let mount = &container["volumeMounts"][0];
    assert_eq!(mount["subPathExpr"], "$(JOB_COMPLETION_INDEX)");
    let volume = &pod["volumes"][0];
    assert_eq!(
        [&volume["name"], &volume["secret"]["secretName"]],
        [&mount["name"], name]
    );
    let environment = container["env"].as_array().unwrap();
    let of = |name: &str| environment.iter().find(|own| own["name"] == name).unwrap();
    // Where the file of a pod is mounted is where its agent looks.
    assert_eq!(of("PUBGAUGE_JOIN_FILE")["value"], mount["mountPath"]);
    let index = &of("JOB_COMPLETION_INDEX")["valueFrom"]["fieldRef"]["fieldPath"];
    assert_eq!(
        index,
        "metadata.annotations['batch.kubernetes.io/job-completion-index']"
    );
    let arguments = container["args"].as_array().unwrap().iter();
    let arguments: Vec<&str> = arguments.map(|own| own.as_str().unwrap()).collect();

    let parts = secret["stringData"].as_object().unwrap();
    assert_eq!(Some(parts.len() as u64), spec["completions"].as_u64());
    let start = |index: usize| {
        let own = parts[&index.to_string()].as_str().unwrap();
        assert_eq!(own.matches("token ").count(), 1, "that of the pod alone");
        let file = format!("pod-{index}");
        let path = place.write(&file, own);
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o400)).unwrap();
        let mut command = hosts.command(index, &arguments.join(" "));
        command.env("JOB_COMPLETION_INDEX", index.to_string());
        Agent::start(place, command, &file)
    };
    (0..parts.len()).map(start).collect()
}

/// The agents have ended well, and nothing is left.
#[track_caller]
fn all_is_over(place: &Place, agents: Vec<Agent>, token: &str) {
    for (index, agent) in agents.into_iter().enumerate() {
        assert_eq!(agent.ends(), Some(0));
        std::fs::remove_file(place.at(&format!("pod-{index}"))).unwrap();
    }
    nothing_is_left(place, token);
    let trial = place.trial("run");
    adds_up(&trial);
    let names = trial["hosts"].as_array().unwrap().iter();
    let names = names.map(|host| &host["name"]).collect::<Vec<_>>();
    assert_eq!(names, ["node-0", "node-1", "node-2"]);
}

#[test]
fn what_is_rendered_runs_in_pods() {
    let place = Place::new();
    let hosts = Hosts::make(3, 0);
    let at = format!("{}:{}", hosts.own, free_port());
    let flags = ["--workers-from", "join", "--hosts", "3", "--join-at", &at];
    let mut run = place.start(&paced("run", &[&LENGTH[..], &flags].concat()));
    listens(&mut run, &place);
    let token = token(&place);
    let render = ["hosts", "render", "--join", &at, "--image"];
    let image = "registry.example:5000/\"pub gauge\"";
    let refused = place.run(&[&render[..], &[image]].concat()).exits(3);
    refused.says("is no image");
    let image = "registry.example:5000/pubgauge@sha256:0";
    let rendered = place.run(&[&render[..], &[image]].concat()).exits(0);
    let objects = valid(&place, &rendered.out);
    assert_eq!(
        objects[2]["spec"]["template"]["spec"]["containers"][0]["image"],
        image
    );
    let agents = pods(&place, &hosts, &objects);
    let done = run.ends();
    done.ran_to_its_end();
    all_is_over(&place, agents, &token);
    // The run has removed its credentials.
    let nothing = place.run(&[&render[..], &[image]].concat()).exits(3);
    nothing.says("--workers-from join");
}

#[test]
fn a_run_tells_a_cluster_itself() {
    let place = Place::new();
    let hosts = Hosts::make(3, 1);
    // In the place of kubectl: it keeps what it is told.
    let kubectl = "#!/bin/sh\necho \"$@\" >>kubectl.told\n[ \"$1\" != apply ] || { cat >applying && mv applying applied; }\n";
    std::fs::create_dir(place.at("bin")).unwrap();
    let program = place.write("bin/kubectl", kubectl);
    std::fs::set_permissions(program, PermissionsExt::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    let with = |path: String, at: &str| {
        let flags = [
            "--workers-from",
            "kubernetes",
            "--hosts",
            "3",
            "--join-at",
            at,
        ];
        let image = ["--image", "pubgauge:test"];
        let args = paced("run", &[&LENGTH[..], &flags, &image].concat())
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>();
        let mut command = place.command(&args);
        command.env("PATH", path);
        command
    };
    // No address that pods reach, and no kubectl.
    let unknown = place.finish(with(path.clone(), "0.0.0.0:0")).exits(3);
    unknown.says("--join-at ADDRESS:PORT");
    let at = format!("{}:{}", hosts.own, free_port());
    let nowhere = place.at("nowhere").display().to_string();
    let without = place.finish(with(nowhere, &at)).exits(2);
    without
        .says("cannot start kubectl")
        .says("pubgauge hosts render");
    assert!(!place.at("run").exists() && !place.at("pubgauge-join").exists());

    let at = format!("{}:{}", hosts.own, free_port());
    let bin = place.at("bin").display().to_string();
    let mut run = place.spawn(with(format!("{bin}:{path}"), &at));
    run.until("what kubectl is told", || place.at("applied").exists());
    let token = token(&place);
    let applied = std::fs::read_to_string(place.at("applied")).unwrap();
    std::fs::remove_file(place.at("applied")).unwrap();
    let objects = valid(&place, &applied);
    let agents = pods(&place, &hosts, &objects);
    let done = run.ends();
    done.ran_to_its_end();
    done.says("started by kubectl");
    let told = std::fs::read_to_string(place.at("kubectl.told")).unwrap();
    let told: Vec<&str> = told.lines().collect();
    let name = objects[2]["metadata"]["name"].as_str().unwrap();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("apply --filename=-"), "{told:?}");
    let label = format!("--selector=app.kubernetes.io/instance={name}");
    let deleted = format!("delete job,service,secret {label} --ignore-not-found");
    assert!(told[1].starts_with(&deleted), "{told:?}");
    all_is_over(&place, agents, &token);
}
