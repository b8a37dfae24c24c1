//! The largest plan.

use crate::common::*;

/// What `pubgauge plan study.toml` takes at the most of memory, bytes.
fn memory_of_plan(place: &Place) -> u64 {
    let mut command = place.command(&["plan", "study.toml"]);
    command.stdout(std::fs::File::create(place.at("plan.txt")).unwrap());
    let child = command.spawn().unwrap();
    // SAFETY: the process was started here and is waited for once; the structures are of this stack.
    let (status, usage) = unsafe {
        let (mut status, mut usage) = (0, std::mem::zeroed::<libc::rusage>());
        let pid = child.id() as i32;
        assert_eq!(libc::wait4(pid, &mut status, 0, &mut usage), pid);
        (status, usage)
    };
    assert_eq!(status, 0);
    usage.ru_maxrss as u64 * 1024
}

/// 100,000 trials: 20,000 payloads, five times each.
#[test]
fn a_plan_of_100_000_trials_takes_200_mb_at_the_most() {
    let place = Place::new();
    let sizes: Vec<String> = (0..20_000).map(|n| format!("\"{}B\"", 20 + n)).collect();
    place.write(
        "study.toml",
        format!(
            "name = \"s\"\nsystems = [\"simulated\"]\nrepeats = 5\n[phases]\nwarm-up = \"1s\"\nmeasure = \"1s\"\n\
             [grid]\npayload = [{}]\n[[workload]]\nname = \"w\"\n[[workload.flow]]\nrate = \"10/s\"\n",
            sizes.join(",")
        ),
    );
    let bytes = memory_of_plan(&place);
    assert!(bytes < 200_000_000, "{bytes} bytes");
}
