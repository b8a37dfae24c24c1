//! docs/tutorial.md: its files are written, its commands run in their order in one folder, and what
//! they print is compared with what the page shows, figures aside.

use crate::common;

use std::process::Command;

use common::*;

/// The commands of the page.
#[derive(Debug)]
enum Step {
    /// Write this file.
    File { path: String, text: String },
    /// Run this command, which prints these lines among others.
    Run { command: String, shown: Vec<String> },
}

/// The steps of the page. Blocks of `sh` are not for the test (they install); a block of any other
/// kind is an error, so that nothing on the page goes unchecked by oversight.
fn steps(page: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut lines = page.lines();
    let mut before = "";
    while let Some(line) = lines.next() {
        let Some(kind) = line.strip_prefix("```") else {
            if !line.is_empty() {
                before = line;
            }
            continue;
        };
        let block: Vec<&str> = lines.by_ref().take_while(|l| *l != "```").collect();
        match kind {
            "sh" => {}
            "console" => {
                for line in block {
                    if let Some(command) = line.strip_prefix("$ ") {
                        steps.push(Step::Run {
                            command: command.into(),
                            shown: Vec::new(),
                        });
                    } else if let Some(Step::Run { shown, .. }) = steps.last_mut() {
                        shown.push(line.into());
                    }
                }
            }
            "toml" | "yaml" => {
                let path = before.rsplit('`').nth(1).unwrap_or_else(|| {
                    panic!("the line above a file ends with its name, not: {before}")
                });
                let text = block.join("\n") + "\n";
                for command in text
                    .lines()
                    .filter_map(|l| l.split_once("- run: pubgauge "))
                {
                    let command = format!("pubgauge {}", command.1);
                    let shown = Vec::new();
                    steps.push(Step::Run { command, shown });
                }
                steps.push(Step::File {
                    path: path.into(),
                    text,
                });
            }
            kind => panic!("what is a block of {kind:?}?"),
        }
    }
    steps
}

/// A line without what differs from run to run: figures with their units, verdicts that a busy
/// machine changes, the width of columns.
fn shape(line: &str) -> String {
    let mut words: Vec<&str> = Vec::new();
    // Of an answer, whose it is: a busy machine changes the rest.
    if let Some((system, answer)) = line.trim().split_once("  ")
        && ["yes", "no ", "cannot tell"]
            .iter()
            .any(|word| answer.trim().starts_with(word))
    {
        return format!("ANSWER {system}");
    }
    for word in line.trim_start_matches(['!', ' ']).split_whitespace() {
        let figure = word.trim_start_matches(['+', '-', '~']);
        let is_unit = ["ns", "µs", "ms", "s", "/s", "k/s", "M/s", "%"].contains(&word);
        match word {
            _ if is_unit && words.last() == Some(&"#") => {}
            // Columns of percentiles that no trial has are left out.
            _ if is_percentile(word) => {}
            _ if figure.is_empty() || figure.starts_with(|c: char| c.is_ascii_digit()) => {
                if words.last() != Some(&"#") {
                    words.push("#");
                }
            }
            // `4 trials · 0 valid`: on a quiet machine all are, and nothing is said.
            "valid" if words.ends_with(&["·", "#"]) => words.truncate(words.len() - 2),
            "valid" | "client" | "unsteady" | "overload" => words.push("VERDICT"),
            // `1/2 ok`
            "ok" if words.last() == Some(&"#") => {
                words.pop();
                words.push("VERDICT");
            }
            "met:" | "undecided:" => words.push("OUTCOME"),
            word => words.push(word),
        }
    }
    words.join(" ")
}

/// `p50`, `p99.9`.
fn is_percentile(word: &str) -> bool {
    let number = word.strip_prefix('p').map(str::parse::<f64>);
    number.is_some_and(|number| number.is_ok())
}

/// Whether a run says that this machine was too busy for its figures to be trusted.
fn busy(output: &str) -> bool {
    [
        "cannot tell",
        "only give bounds",
        "client-bound",
        "unsteady",
    ]
    .iter()
    .any(|verdict| output.contains(verdict))
}

#[test]
fn what_differs_from_run_to_run_is_left_out_of_a_comparison() {
    assert_eq!(
        shape("!mosquitto   client  1.00 k/s 112 µs  -   0 64.3"),
        shape(" mosquitto  valid   500/s 1.3 ms 640 µs  12 7")
    );
    assert_eq!(
        shape(" system  verdict  msgs/s  p50  p99  p99.9  lost"),
        shape(" system  verdict  msgs/s  lost")
    );
    assert_ne!(
        shape(" mosquitto valid 500/s"),
        shape("!mosquitto lossy 500/s")
    );
    assert_ne!(
        shape("  - met: lost equals 0"),
        shape("  - NOT MET: lost equals 0")
    );
    assert_ne!(shape("page: own/report.html"), shape("page: b/report.html"));
    assert_eq!(
        shape(" my-broker  yes p99 1 ms"),
        shape(" my-broker  cannot tell")
    );
    assert_ne!(
        shape(" my-broker  yes p99 1 ms"),
        shape(" other  yes p99 1 ms")
    );
}

/// Tests that take long.
mod long {
    use super::*;

    #[test]
    fn the_tutorial_does_what_it_shows() {
        let page = std::fs::read_to_string(repository("docs/tutorial.md")).unwrap();
        let place = Place::new();
        let path = std::env::join_paths(
            std::iter::once(program().parent().unwrap().to_path_buf()).chain(
                std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()),
            ),
        )
        .unwrap();
        let mut last = 0;
        let mut last_output = String::new();
        let mut runs = 0;
        for step in steps(&page) {
            let (command, shown) = match step {
                Step::File { path, text } => {
                    let path = place.path_to(&path);
                    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                    std::fs::write(path, text).unwrap();
                    continue;
                }
                Step::Run { command, shown } => (command, shown),
            };
            if command == "echo $?" {
                let expected: i32 = shown[0].parse().unwrap();
                // 2 instead of 0: a machine that is busy with other tests can leave it undecided.
                assert!(
                    last == expected || (last == 2 && expected == 0 && busy(&last_output)),
                    "exit code {last}, and the page shows {expected}; printed:\n{last_output}"
                );
                continue;
            }
            let mut shell = Command::new("sh");
            shell.args(["-c", &command]);
            place.run_here(&mut shell);
            shell.env("PATH", &path).env_remove("GITHUB_ACTIONS");
            let done = place.finish(shell);
            last = done.code;
            last_output = done.err + &done.out;
            let printed: Vec<String> = last_output.lines().map(shape).collect();
            let mut rest = printed.iter();
            let shown = shown.iter().filter(|line| *line != "...");
            for line in shown {
                let wanted = shape(line.trim_end_matches(" (...)"));
                assert!(
                    rest.any(|line| *line == wanted || line.starts_with(&format!("{wanted} ("))),
                    "`{command}` does not print, where the page shows it:\n{line}\n\
                     ({wanted})\nbut:\n{last_output}"
                );
            }
            runs += 1;
        }
        assert!(runs >= 8, "only {runs} commands were found on the page");
        place.is_clean();
    }
}
