//! Files by topic and event time, as readers see them.

use std::process::Command;

use super::*;

/// Tests that need a package of PyPI.
mod long {
    use super::*;

    /// Rows of both readers: site, date, hour, number of messages.
    const READERS: &str = r#"
import glob, duckdb, pyarrow.dataset
rows = duckdb.sql('''select site, date::text, hour::int, count(*) from read_parquet(
  'data/site=*/date=*/hour=*/*.parquet', hive_partitioning = true) group by all order by all nulls first''').fetchall()
files = sorted(glob.glob('data/site=*/date=*/hour=*/*.parquet'))
table = pyarrow.dataset.dataset(files, partitioning='hive', partition_base_dir='data').to_table(['site', 'date', 'hour', 'seq'])
counts = table.group_by(['site', 'date', 'hour']).aggregate([('seq', 'count')]).to_pylist()
same = sorted([tuple(row.values()) for row in counts], key=lambda row: (row[0] is not None, row))
assert rows == same, (rows, same)
for row in rows: print(*row, sep='|')
"#;

    #[test]
    fn readers_find_topics_and_event_times_as_they_were_sent() {
        let (place, broker) = (new_place(), Mosquitto::start());
        let config = format!(
            "brokers = [{:?}]\ntopics = [\"m/#\"]\nto = \"data\"\n[files]\npartition = [\"site={{topic level 2}}\", \"date\", \"hour\"]\nevent-time = \"/ts\"\n",
            url(&broker)
        );
        place.write("collect.toml", config);
        let args = ["--config", "collect.toml", "--messages", "8"];
        let mut collector = place.start(&args);
        collector.until_said("connected, with a new session");
        // An hour ago, and the hour before that.
        let now = std::time::SystemTime::now();
        let now = now.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        let hour = now / 3600 - 1;
        for (topic, ts) in [
            ("m/north", hour * 3600),
            ("m/north/x", hour * 3600 + 3599),
            ("m/north", hour * 3600 - 1),
            ("m/x=y é%", hour * 3600),
            ("m/..", hour * 3600),
            ("m/007", hour * 3600),
            ("m//a", hour * 3600),
            ("m", hour * 3600),
        ] {
            let port = broker.port.to_string();
            let payload = format!("{{\"ts\": {ts}}}");
            let mut publisher = Command::new("mosquitto_pub");
            publisher.args(["-p", &port, "-q", "1", "-t", topic, "-m", &payload]);
            assert!(publisher.status().unwrap().success());
        }
        collector.ends_within(Duration::from_secs(60)).exits(0);
        place.run(&["verify", "data"]).exits(0);
        let mut python = Command::new("python3");
        python.args(["-c", READERS]);
        place.run_here(&mut python);
        let printed = place.finish(python).exits(0).out;
        let at = |hour: u64| {
            let mut date = Command::new("date");
            date.args(["-u", "+%F|%-H", "-d", &format!("@{}", hour * 3600)]);
            let out = date.output().unwrap().stdout;
            String::from_utf8(out).unwrap().trim().to_owned()
        };
        let (one, before) = (at(hour), at(hour - 1));
        let mut expected = vec![
            format!("None|{one}|2"),
            format!("..|{one}|1"),
            format!("007|{one}|1"),
            format!("north|{before}|1"),
            format!("north|{one}|2"),
            format!("x=y é%|{one}|1"),
        ];
        expected.sort();
        let mut lines: Vec<_> = printed.lines().map(str::to_owned).collect();
        lines.sort();
        assert_eq!(lines, expected);
    }
}
