//! Small files that become larger ones, killed at any moment.

use std::path::Path;
use std::process::Command;

use super::*;

const SITES: [&str; 3] = ["m/north", "m/south", "m/east"];

/// Rounds of collecting, each of which makes a file for each site.
const ROUNDS: u32 = 6;

/// Collects messages of three sites as so many files of each.
fn collected(place: &Place, form: &str) {
    let broker = Mosquitto::start();
    let config = format!(
        "brokers = [{:?}]\ntopics = [\"m/#\"]\nto = \"data\"\nname = \"c\"\nform = {form:?}\n[files]\npartition = [\"site={{topic level 2}}\"]\n",
        url(&broker)
    );
    place.write("collect.toml", config);
    for _ in 0..ROUNDS {
        let args = ["--config", "collect.toml", "--messages", "30"];
        let mut collector = place.start(&args);
        collector.until_said("connected, with");
        for topic in SITES {
            publish(&broker, topic, 10);
        }
        collector.ends_within(Duration::from_secs(60)).exits(0);
    }
}

/// All lines of a folder's files, sorted, and the number of files.
fn lines(data: &Path) -> (Vec<String>, usize) {
    let (mut lines, mut files) = (Vec::new(), 0);
    for site in SITES.map(|topic| topic.replace("m/", "site=")) {
        for entry in data.join(site).read_dir().unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|form| form == "ndjson") {
                let text = std::fs::read_to_string(path).unwrap();
                lines.extend(text.lines().map(str::to_owned));
                files += 1;
            }
        }
    }
    lines.sort();
    (lines, files)
}

#[test]
fn merging_that_is_killed_at_any_moment_loses_and_doubles_nothing() {
    let place = new_place();
    collected(&place, "ndjson");
    let (before, files) = lines(&place.path_to("data"));
    assert_eq!((before.len(), files), (180, 18));
    let merge = |data: &str| {
        place
            .run(&["compact", data, "--older-than", "0s", "--json"])
            .exits(0)
    };
    for nth in 0..10 {
        let data = format!("killed-{nth}");
        let mut copy = Command::new("cp");
        let copied = copy
            .args(["-a"])
            .args([place.path_to("data"), place.path_to(&data)]);
        assert!(copied.status().unwrap().success());
        let merging = place.start(&["compact", &data, "--older-than", "0s"]);
        std::thread::sleep(Duration::from_millis(4 * nth));
        merging.signal(libc::SIGKILL);
        merging.ends_within(Duration::from_secs(60));
        for round in ["killed", "merged"] {
            let (now, files) = lines(&place.path_to(&data));
            assert!(now == before, "{round}, {nth}: {} lines", now.len());
            let found = place.run(&["verify", &data, "--json"]).exits(0);
            let found: serde_json::Value = serde_json::from_str(&found.out).unwrap();
            assert_eq!(
                (&found["messages"], &found["by_qos"][1]),
                (&180.into(), &180.into())
            );
            if round == "merged" {
                assert_eq!(files, 3, "{nth}");
            }
            merge(&data);
        }
    }
    let nothing: serde_json::Value = serde_json::from_str(&merge("killed-0").out).unwrap();
    assert_eq!(nothing["files"], 0);
}

#[test]
fn what_is_left_is_told_with_exit_code_2_and_what_is_damaged_with_1() {
    let place = new_place();
    collected(&place, "parquet");
    // Nothing was finished an hour ago.
    let args = ["compact", "data"];
    let done = place.run(&args).exits(0);
    assert!(
        done.out.starts_with("0 finished files of 0 messages"),
        "{done:?}"
    );
    let args = ["compact", "data", "--older-than", "0s"];
    std::os::unix::fs::symlink("/etc/passwd", place.path_to("data/site=north/link")).unwrap();
    let done = place.run(&args).exits(2);
    assert!(
        done.out
            .starts_with("12 finished files of 120 messages merged into 2 files")
            && done.out.contains("left as it is: site=north: ")
            && done.out.contains("symbolic link"),
        "{done:?}"
    );
    std::fs::remove_file(place.path_to("data/site=north/link")).unwrap();
    let damaged = place.path_to("data/site=north").read_dir().unwrap().next();
    std::fs::write(damaged.unwrap().unwrap().path(), "x").unwrap();
    let done = place.run(&args).exits(1);
    assert!(done.out.contains("fault: site=north/"), "{done:?}");
}

/// Tests that need a package of PyPI.
mod long {
    use super::*;

    /// Rows as a reader finds them: their number, the sum of their hashes, and the number of files.
    const READER: &str = r#"
import duckdb
print(*duckdb.sql('''select count(*), sum(hash(t)), count(distinct filename) from (
  select {'seq': seq, 'topic': topic, 'payload': payload, 'received': received_ns, 'site': site} as t, filename
  from read_parquet('data/site=*/*.parquet', hive_partitioning = true, filename = true))''').fetchall()[0])
"#;

    #[test]
    fn a_reader_finds_the_same_rows_in_fewer_files() {
        let place = new_place();
        collected(&place, "parquet");
        let read = || {
            let mut python = Command::new("python3");
            python.args(["-c", READER]);
            place.run_here(&mut python);
            let printed = place.finish(python).exits(0).out;
            let mut words = printed.split_whitespace().map(str::to_owned);
            [(); 3].map(|()| words.next().unwrap())
        };
        let [count, hash, files] = read();
        assert_eq!((&*count, &*files), ("180", "18"));
        place
            .run(&["compact", "data", "--older-than", "0s"])
            .exits(0);
        assert_eq!(read(), [count, hash, "3".to_owned()]);
    }
}
