//! System files and runs of strangers: nothing of theirs runs, and nothing is read or sent for them, unless this command
//! line asks for it.

use crate::common;

use std::net::TcpListener;

use pubgauge_testing::stranger::StrangersPort;

use common::*;

/// A system whose version is asked for by a command that leaves a mark.
fn marking(place: &Place) -> String {
    let mark = place.path_to("mark").display().to_string();
    std::fs::create_dir(place.path_to("own")).unwrap();
    place.write(
        "own/marking.toml",
        format!(
            r#"
name = "marking"
driver = "mqtt"
[find]
executables = ["sleep"]
[version]
command = ["/bin/sh", "-c", "touch {mark}; echo version 1.2"]
pattern = "version {{version}}"
[run]
command = ["{{exe}}", "0"]
[ready]
stdout-line = "ready"
"#
        ),
    );
    mark
}

#[test]
fn nothing_of_a_system_runs_before_it_is_asked_for() {
    let place = Place::new();
    let mark = marking(&place);
    let own = ["--systems", "own"];
    let ran = |args: &[&str]| {
        place.run(&[args, &own[..]].concat());
        std::fs::remove_file(&mark).is_ok()
    };
    assert!(!ran(&["systems"]));
    assert!(!ran(&["systems", "--matrix"]));
    assert!(!ran(&["plan", "--rate", "1/s", "--on", "marking"]));
    // It is not asked for.
    let other = [
        "--on",
        "simulated",
        "--rate",
        "100/s",
        "--duration",
        "100ms",
    ];
    assert!(!ran(&[&["run", "--out", "a"], &other[..]].concat()));
    assert!(!ran(&["systems", "--install", "connext", "--yes"]));
    // It is: it has no server, and is asked what it is all the same.
    let marked = ["run", "--out", "b", "--on", "marking", "--rate", "1/s"];
    assert!(ran(&[&marked[..], &["--duration", "100ms"]].concat()));
    assert!(ran(&["systems", "--install", "marking", "--yes"]));
}

/// The flags of a run of two trials that is cut off before the second.
fn cut_off(place: &Place, more: &[&str]) {
    let flags = ["run", "--out", "run", "--rate", "100/s", "--repeats", "2"];
    let short = ["--warm-up", "50ms", "--duration", "100ms"];
    place
        .run(&[&flags[..], &short, more].concat())
        .ran_to_its_end();
    std::fs::remove_dir_all(place.path_to("run/trials/0001")).unwrap();
}

#[test]
fn a_resumed_run_takes_its_files_from_the_command_line_alone() {
    let place = Place::new();
    let mark = marking(&place);
    place.write("password", "of the user\n");
    let given = ["--systems", "own", "--password-file", "password"];
    cut_off(&place, &[&["--on", "simulated"], &given[..]].concat());
    let resume = ["run", "--resume", "run"];
    let at = |path: &str| place.path_to(path).display().to_string();
    place
        .run(&resume)
        .exits(3)
        .assert_says(&format!("--systems {}", at("own")))
        .assert_says(&format!("--password-file {}", at("password")));
    place
        .run(&[&resume[..], &given[..2]].concat())
        .exits(3)
        .assert_says("--password-file");
    // Another folder and another file are told.
    std::fs::create_dir(place.path_to("other")).unwrap();
    place.write("another", "x\n");
    let other = ["--systems", "other", "--password-file", "another"];
    let done = place.run(&[&resume[..], &other].concat());
    done.ran_to_its_end();
    done.assert_says("this run began with --systems")
        .assert_says("this run began with --password-file");
    assert!(!std::path::Path::new(&mark).exists());
    assert_eq!(place.results("run")["trials"].as_array().unwrap().len(), 2);
    place.is_clean();
}

#[test]
fn a_secret_goes_to_no_address_of_a_strangers_folder() {
    let place = Place::new();
    // The stranger's broker: it hears nothing, and counts who came.
    let broker = TcpListener::bind("127.0.0.1:0").unwrap();
    broker.set_nonblocking(true).unwrap();
    let address = format!("mqtt://user@{}", broker.local_addr().unwrap());
    // Begun over a simulated system, and then turned to the address.
    cut_off(&place, &["--on", "simulated"]);
    for file in ["invocation.json", "study.resolved.json"] {
        let text = std::fs::read_to_string(place.path_to("run").join(file)).unwrap();
        let turned = text.replace("\"simulated\"", &format!("\"{address}\""));
        assert_ne!(turned, text, "{file}");
        place.write(
            &format!("run/{file}"),
            turned.replace("simulated /", &format!("{address} /")),
        );
    }
    let mut command = place.command(&["run", "--resume", "run"]);
    command.env("PUBGAUGE_PASSWORD", "of the user");
    place
        .finish(command)
        .exits(3)
        .assert_says("goes to none that this command line does not name")
        .assert_says("repeat the command");
    assert!(broker.accept().is_err(), "nobody came");
    // Named here, it is spoken to.
    let named = ["run", "--resume", "run", "--on", &address];
    let mut command = place.command(&named);
    command.env("PUBGAUGE_PASSWORD", "of the user");
    place.finish(command);
    assert!(broker.accept().is_ok(), "somebody came");
}

/// A study of a stranger, over a broker at an address.
fn study_at(place: &Place, address: &str) {
    place.write(
        "study.toml",
        format!(
            "name = \"s\"\nsystems = [\"{address}\"]\n[phases]\nwarm-up = \"50ms\"\nmeasure = \"100ms\"\n\
             [[workload]]\nname = \"w\"\n[[workload.flow]]\npayload = \"64B\"\nrate = \"100/s\"\n"
        ),
    );
}

#[test]
fn a_password_goes_to_no_address_that_a_study_alone_names() {
    const SECRET: &str = "Vd3-of-the-user";
    let (place, stranger) = (Place::new(), StrangersPort::start());
    let address = format!("mqtt://user@{}", stranger.address);
    study_at(&place, &address);
    std::fs::create_dir(place.path_to("studies")).unwrap();
    std::fs::copy(
        place.path_to("study.toml"),
        place.path_to("studies/one.toml"),
    )
    .unwrap();
    place.write("password", format!("{SECRET}\n"));
    let run = |args: &[&str]| {
        let mut command = place.command(args);
        command.env("PUBGAUGE_PASSWORD", SECRET);
        place.finish(command)
    };
    for line in [
        "run study.toml --out run",
        "find study.toml --out run",
        "run studies --out run",
        "run study.toml --out run --login-at mqtt://user@localhost:1",
    ] {
        run(&argv(line))
            .exits(3)
            .assert_says("comes from the study")
            .assert_says(&format!("pubgauge {line} --login-at {address}"));
    }
    let from_file = argv("run study.toml --out run --password-file password");
    place
        .run(&from_file)
        .exits(3)
        .assert_says("comes from the study");
    assert_eq!(stranger.received_text(), "");
    // Without a secret it is spoken to, and with a yes, it gets it.
    place.run(&argv("run study.toml --out without"));
    let without = stranger.received_text();
    assert!(!without.is_empty() && !without.contains(SECRET));
    for (nth, more) in ["--login-at", "--on"].into_iter().enumerate() {
        let before = stranger.received_text().matches(SECRET).count();
        let out = format!("named-{nth}");
        run(&["run", "study.toml", "--out", &out, more, &address]);
        assert!(
            stranger.received_text().matches(SECRET).count() > before,
            "{more}"
        );
    }
}

#[test]
fn a_resumed_study_reads_traces_only_where_it_is_named() {
    let place = Place::new();
    place.write(
        "tape.csv",
        "time,device,topic,size\n2023-06-13T03:11:00Z,a,t,20\n2023-06-13T03:11:00.1Z,a,t,20\n",
    );
    place.write(
        "study.toml",
        "name = \"s\"\nrepeats = 2\nsystems = [\"simulated\"]\n[phases]\nwarm-up = \"50ms\"\nmeasure = \"100ms\"\n\
         [trace.tape]\nfiles = [\"tape.csv\"]\n[[workload]]\nname = \"w\"\n[[workload.flow]]\n\
         replay = { trace = \"tape\" }\n",
    );
    place
        .run(&["run", "study.toml", "--out", "run"])
        .ran_to_its_end();
    std::fs::remove_dir_all(place.path_to("run/trials/0001")).unwrap();
    place
        .run(&["run", "--resume", "run"])
        .exits(3)
        .assert_says("reads recorded traces")
        .assert_says("repeat the command");
    place
        .run(&["run", "study.toml", "--resume", "run"])
        .ran_to_its_end();
    assert_eq!(place.results("run")["trials"].as_array().unwrap().len(), 2);
    // Other readings in the same file are another workload.
    let before = place.results("run");
    place.write(
        "tape.csv",
        "time,device,topic,size\n2023-06-13T03:11:00Z,a,t,20\n2023-06-13T03:11:00.1Z,a,t,21\n",
    );
    place
        .run(&["run", "study.toml", "--resume", "run"])
        .exits(3)
        .assert_says("plan.traces[0].crc32");
    assert_eq!(place.results("run"), before);
}

#[test]
fn a_list_of_studies_names_folders_of_its_own_alone() {
    let place = Place::new();
    std::fs::create_dir(place.path_to("papers")).unwrap();
    place.write(
        "papers/one.toml",
        "name = \"one\"\nsystems = [\"simulated\"]\n[phases]\nwarm-up = \"50ms\"\nmeasure = \"100ms\"\n\
         [[workload]]\nname = \"w\"\n[[workload.flow]]\npayload = \"64B\"\nrate = \"100/s\"\n",
    );
    place
        .run(&["run", "papers", "--out", "all"])
        .ran_to_its_end();
    let text = std::fs::read_to_string(place.path_to("all/studies.json")).unwrap();
    std::fs::remove_dir_all(place.path_to("all/one")).unwrap();
    for folder in ["../outside", "/tmp/outside", "..", ""] {
        place.write(
            "all/studies.json",
            text.replace("\"folder\": \"one\"", &format!("\"folder\": {folder:?}")),
        );
        place
            .run(&["run", "--resume", "all"])
            .exits(3)
            .assert_says("is no folder in it");
    }
    assert!(!place.path_to("outside").exists());
}

#[test]
fn a_report_on_a_folder_that_cannot_be_written_still_has_its_table() {
    let place = Place::new();
    place
        .run(&argv(
            "run --on simulated --rate 100/s --duration 100ms --out run",
        ))
        .ran_to_its_end();
    // Root may write everywhere but through what is no file.
    std::fs::remove_file(place.path_to("run/report.html")).unwrap();
    std::fs::create_dir_all(place.path_to("run/report.html/x")).unwrap();
    let done = place
        .run(&["report", "run"])
        .exits(2)
        .assert_says("cannot write");
    assert!(
        done.out.contains("simulated") && !done.out.contains("page:"),
        "{}",
        done.out
    );
}
