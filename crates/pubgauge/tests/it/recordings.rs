//! Recordings of other tools, as the verbs and the plan of a study take them.

use std::process::{Command, Stdio};

use pubgauge_testing::mosquitto::Mosquitto;

use crate::common;

use common::*;

/// Lines of `mosquitto_sub -F %j` in Berlin, cut off in the middle of the third message.
const MOSQUITTO: &str = r#"{"tst":"2026-05-06T22:12:00.000000Z+0200","topic":"g/1","qos":0,"retain":0,"payloadlen":4,"payload":"21.5"}
{"tst":"2026-05-06T22:12:01.500000Z+0200","topic":"g/2","qos":1,"retain":0,"payloadlen":4,"mid":7,"payload":"21.7"}
{"tst":"2026-05-06T22:12:0"#;

/// Lines of a plan are wrapped.
#[track_caller]
fn assert_says(plan: &str, words: &str) {
    let words_of_plan: Vec<&str> = plan.split_whitespace().collect();
    assert!(words_of_plan.join(" ").contains(words), "{words}: {plan}");
}

#[test]
fn a_recording_of_mosquitto_sub_is_shown_planned_and_stored() {
    let place = Place::new();
    place.write("m.ndjson", MOSQUITTO);
    let shown = place.run(&["trace", "show", "m.ndjson"]).exits(0);
    for said in [
        "2 messages of 2 devices",
        "m.ndjson: the file ends in the middle, at line 3; all that is whole before that is kept",
        "each topic is taken as one",
        "nothing is taken from: `mid`",
    ] {
        assert!(shown.out.contains(said), "{said}: {}", shown.out);
    }
    let shown = place.run(&["trace", "show", "m.ndjson", "--json"]).exits(0);
    let about: serde_json::Value = serde_json::from_str(&shown.out).unwrap();
    assert_eq!(about["remarks"]["cut"][0]["file"], "m.ndjson");
    assert_eq!(about["remarks"]["cut"][0]["line"], 3);
    place.write(
        "replay.toml",
        "name = \"replay\"\nsystems = [\"simulated\"]\n[phases]\nwarm-up = \"0s\"\nmeasure = \"2s\"\n\
         [trace.tape]\nfiles = [\"m.ndjson\"]\n[[workload]]\nname = \"w\"\n[[workload.flow]]\n\
         replay = { trace = \"tape\" }\n",
    );
    let plan = place.run(&["plan", "replay.toml"]).exits(0);
    assert_says(&plan.out, "trace tape:");
    assert_says(&plan.out, "ends in the middle, at line 3");
    place.run(&argv("run replay.toml --out run"));
    let stored = std::fs::read_to_string(place.path_to("run/study.resolved.json")).unwrap();
    let stored: serde_json::Value = serde_json::from_str(&stored).unwrap();
    assert_eq!(stored["traces"][0]["remarks"]["cut"][0]["line"], 3);
    assert_eq!(stored["traces"][0]["readings"], 2);
}

#[test]
fn a_claim_about_a_recording_alone_has_no_trials_of_its_own() {
    let place = Place::new();
    let hours = [11, 12, 13, 15, 16, 17];
    let line = |hour| {
        format!(
            "{{\"tst\":\"2026-05-06T{hour}:00:00.000000Z+0000\",\"topic\":\"g/1\",\"qos\":0,\"payloadlen\":4,\
             \"payload\":\"21.5\"}}\n"
        )
    };
    place.write("m.ndjson", hours.map(line).concat());
    place.write(
        "claims.toml",
        "name = \"c\"\nsystems = [\"simulated\"]\n[trace.tape]\nfiles = [\"m.ndjson\"]\n[recording.day]\ntrace = \"tape\"\n\
         hours = { noon = \"11h..14h\", rest = \"14h..24h\" }\n[[workload]]\nname = \"w\"\n[[workload.flow]]\n\
         replay = { trace = \"tape\" }\n[[claim]]\nid = \"W1\"\nsentence = \"The rate peaks about noon.\"\n\
         source = \"figure 3\"\nfigure = \"recorded-rate\"\nwhere = { recording = \"day\" }\n\
         rule = { sides = [{ hours = \"noon\" }], against = [{ hours = \"rest\" }], ratio = \"> 1\" }\n",
    );
    place.run(&argv("plan claims.toml")).exits(0);
    let refused = place.run(&argv("plan claims.toml --claim W1")).exits(3);
    let hint =
        "a recording is read in each run of its study: name a claim that has trials beside it";
    assert!(refused.err.contains(hint), "{}", refused.err);
}

#[test]
fn flags_of_convert_for_files_of_other_tools() {
    let place = Place::new();
    let convert = |flags: &str, file: &str| {
        let mut args = argv("trace convert --out out.csv --device device --size size");
        args.extend(argv(flags));
        args.push(file);
        place.run(&args)
    };
    place.write("tab.csv", "time\tdevice\tsize\n1\ta\t20\n");
    for tab in ["tab", "\\t", "\t"] {
        let mut args = argv("trace convert --time time --device device --size size --out out.csv");
        args.extend(["--delimiter", tab, "tab.csv"]);
        place.run(&args).exits(0);
    }
    convert("--time time --delimiter tabs", "tab.csv")
        .exits(3)
        .assert_says("one character is expected, or `tab`");
    place.write(
        "dates.csv",
        "date;time;device;size\n01.02.2026;08:30:05,5;a;20\n",
    );
    convert(
        "--date date --time time --time-format dmy-hms --time-zone -05:00 --decimal , --delimiter ;",
        "dates.csv",
    )
    .exits(0);
    let written = std::fs::read_to_string(place.path_to("out.csv")).unwrap();
    assert_eq!(written, "time,device,size\n2026-02-01T13:30:05.5Z,a,20\n");
    let mut args = argv("trace convert --time time --device device --size size --out out.csv");
    args.extend(["--time-format", "%Y-%m-%d %H:%M:%S %Z", "tab.csv"]);
    place
        .run(&args)
        .exits(3)
        .assert_says("%Z stands for the name of a zone");
    convert(
        "--time time --time-format ymd-hms --delimiter ; --time-zone Nowhere/Else",
        "dates.csv",
    )
    .exits(3);
    place.write("hex.csv", "# a comment\n1,a,00ff,1,1,x\n");
    let mut args =
        argv("trace convert --no-header --columns 6 --comment # --time 1 --device 2 --payload 3");
    args.extend(argv(
        "--payload-as hex --qos 4 --retain 5 --out out.csv hex.csv",
    ));
    let done = place.run(&args).exits(0);
    assert!(
        done.out.contains("nothing is taken from: `number 6`"),
        "{}",
        done.out
    );
    let written = std::fs::read(place.path_to("out.csv")).unwrap();
    let expected = b"time,device,size,payload,qos,retain\n1970-01-01T00:00:01Z,a,2,\0\xff,1,1\n";
    assert_eq!(written, expected);
}

/// An independent client hears the recorded topics, bytes, quality of service and retain, and beside them the empty messages
/// that prove that a topic is heard.
#[test]
fn recorded_contents_arrive_at_another_client_as_they_were() {
    let place = Place::new();
    let broker = Mosquitto::start();
    let format = "%t|q%q|r%r|%x";
    let port = broker.port.to_string();
    let mut heard = Command::new("mosquitto_sub");
    heard.args([
        "-V",
        "5",
        "-p",
        &port,
        "-q",
        "2",
        "-t",
        "#",
        "--retain-as-published",
    ]);
    heard.args(["-F", format, "-W", "20"]);
    let heard = heard.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut heard = heard.expect("mosquitto_sub is installed");
    place.write(
        "rec.csv",
        "time,device,topic,payload,qos,retain\n\
         1761414298.0,a,kitchen/temp,\"{\"\"t\"\":21.5,\"\"unit\"\":\"\"°C\"\"}\",1,1\n\
         1761414298.3,b,cellar/temp,\"{\"\"t\"\":12.25,\"\"unit\"\":\"\"°C\"\"}\",2,0\n\
         1761414298.6,a,kitchen/temp,ON,0,0\n",
    );
    place.write(
        "replay.toml",
        format!(
            "name = \"replay\"\nsystems = \"{}\"\n[phases]\nwarm-up = \"0s\"\nmeasure = \"1500ms\"\n\
             [trace.t]\nfiles = \"rec.csv\"\n[[settings]]\nreliability = \"exactly-once\"\n\
             [[workload]]\nname = \"w\"\n[[workload.flow]]\n\
             replay = {{ trace = \"t\", loop = false, contents = \"recorded\" }}\n",
            broker.address()
        ),
    );
    let plan = place.run(&["plan", "replay.toml"]).exits(0);
    assert_says(&plan.out, "with pubgauge's header in a user property");
    assert!(!plan.out.contains("higher QoS"), "{}", plan.out);
    let done = place.run(&argv("run replay.toml --out run"));
    let trial = place.trial("run");
    adds_up(&trial);
    assert_eq!(trial["published"], 3, "{}", done.out);
    assert_eq!(trial["odd"]["foreign"], 0);
    let pid = heard.id().to_string();
    Command::new("kill")
        .args(["-INT", &pid])
        .status()
        .expect("ended");
    let mut out = String::new();
    std::io::Read::read_to_string(&mut heard.stdout.take().expect("piped"), &mut out)
        .expect("text");
    heard.wait().expect("ended");
    let hex = |text: &str| text.bytes().map(|b| format!("{b:02x}")).collect::<String>();
    let lines: Vec<&str> = out.lines().filter(|line| !line.ends_with('|')).collect();
    let expected = [
        format!("kitchen/temp|q1|r1|{}", hex("{\"t\":21.5,\"unit\":\"°C\"}")),
        format!("cellar/temp|q2|r0|{}", hex("{\"t\":12.25,\"unit\":\"°C\"}")),
        format!("kitchen/temp|q0|r0|{}", hex("ON")),
    ];
    assert_eq!(lines, expected, "{out}");
    // With a lower reliability the plan says what travels lower, and by MQTT 3.1.1 all else.
    let study = std::fs::read_to_string(place.path_to("replay.toml")).unwrap();
    place.write("low.toml", study.replace("exactly-once", "at-least-once"));
    let plan = place.run(&["plan", "low.toml"]).exits(0);
    assert_says(
        &plan.out,
        "1 messages were recorded with a higher QoS than 1",
    );
    let old = "reliability = \"exactly-once\"\nnative.mqtt.version = \"3.1.1\"";
    place.write(
        "old.toml",
        study.replace("reliability = \"exactly-once\"", old),
    );
    let plan = place.run(&["plan", "old.toml"]).exits(0);
    assert_says(&plan.out, "travel behind pubgauge's header");
    assert_says(&plan.out, "quality of service does not travel");
}
