//! Recordings of other tools, as the verbs and the plan of a study take them.

use crate::common;

use common::*;

/// What `mosquitto_sub -F %j` writes in Berlin, cut off in the middle of the third message.
const MOSQUITTO: &str = r#"{"tst":"2026-05-06T22:12:00.000000Z+0200","topic":"g/1","qos":0,"retain":0,"payloadlen":4,"payload":"21.5"}
{"tst":"2026-05-06T22:12:01.500000Z+0200","topic":"g/2","qos":1,"retain":0,"payloadlen":4,"mid":7,"payload":"21.7"}
{"tst":"2026-05-06T22:12:0"#;

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
    assert!(
        plan.out.contains("trace tape:") && plan.out.contains("ends in the middle, at line 3"),
        "{}",
        plan.out
    );
    place.run(&argv("run replay.toml --out run"));
    let stored = std::fs::read_to_string(place.path_to("run/study.resolved.json")).unwrap();
    let stored: serde_json::Value = serde_json::from_str(&stored).unwrap();
    assert_eq!(stored["traces"][0]["remarks"]["cut"][0]["line"], 3);
    assert_eq!(stored["traces"][0]["readings"], 2);
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
