//! The samplers against work of known size.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use pubgauge_testbed::{
    Catalog, ProcessSampler, SystemFile, Testbed, ThreadSampler, current_tid, lies_in_memory,
};

const MS: u64 = 1_000_000;

fn own_cpu_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Works until the calling thread has used that much more CPU.
fn burn(ns: u64) {
    let end = own_cpu_ns() + ns;
    while own_cpu_ns() < end {
        std::hint::spin_loop();
    }
}

/// Hands each of two threads' numbers out, lets them work, and keeps them until told.
/// A thread of this process, as the sampler takes it.
fn own(tid: i32) -> (i32, i32) {
    (std::process::id() as i32, tid)
}

#[test]
fn a_busy_thread_is_told_from_an_idle_one() {
    std::thread::scope(|scope| {
        let (say, hear) = mpsc::channel();
        let (end_busy, busy_ends) = mpsc::channel::<()>();
        let (end_idle, idle_ends) = mpsc::channel::<()>();
        let busy_say = say.clone();
        let busy = scope.spawn(move || {
            busy_say.send((current_tid(), 0)).unwrap();
            burn(60 * MS);
            busy_say.send((current_tid(), own_cpu_ns())).unwrap();
            let _ = busy_ends.recv();
        });
        let (tid, _) = hear.recv().unwrap();
        let (_, true_ns) = hear.recv().unwrap();
        scope.spawn(move || {
            say.send((current_tid(), 0)).unwrap();
            let _ = idle_ends.recv();
        });
        let (idle, _) = hear.recv().unwrap();

        let mut sampler = ThreadSampler::new([tid, idle].map(own));
        let sample = sampler.sample();
        let cpu = sample.threads[&tid].cpu_ns;
        // Between its own reading and ours it only went to sleep.
        assert!(
            cpu >= true_ns && cpu < true_ns + 2 * MS,
            "{cpu} against {true_ns}"
        );
        assert!(sample.threads[&idle].cpu_ns < 10 * MS);
        assert_eq!(sample.total.cpu_ns, cpu + sample.threads[&idle].cpu_ns);
        // It may not have gone to sleep yet.
        let deadline = Instant::now() + Duration::from_secs(60);
        while sampler.sample().threads[&idle].voluntary_switches == 0 {
            assert!(
                Instant::now() < deadline,
                "an idle thread that never sleeps"
            );
            std::thread::sleep(Duration::from_millis(1));
        }

        // A thread that has ended keeps its last figures.
        end_busy.send(()).unwrap();
        busy.join().unwrap();
        assert!(sampler.sample().threads[&tid].cpu_ns >= true_ns);
        drop(end_idle);
    });
}

#[test]
fn waiting_for_a_processor_is_seen() {
    // Two busy threads on one processor: each waits about as long as the other runs.
    std::thread::scope(|scope| {
        let cpu = pubgauge_testbed::usable_cpus()[0];
        let (say, hear) = mpsc::channel();
        let mut ends = Vec::new();
        for _ in 0..2 {
            let say = say.clone();
            let (end, over) = mpsc::channel::<()>();
            ends.push(end);
            scope.spawn(move || {
                pubgauge_testbed::pin_to(cpu).unwrap();
                burn(60 * MS);
                say.send(current_tid()).unwrap();
                let _ = over.recv();
            });
        }
        let tids = [hear.recv().unwrap(), hear.recv().unwrap()];
        let sample = ThreadSampler::new(tids.map(own)).sample();
        // The one that finishes last has waited for at least most of the other's work, unless
        // they began apart; on any machine some of it overlaps.
        assert!(sample.total.wait_ns > 5 * MS, "{sample:?}");
        assert!(sample.total.involuntary_switches >= 1, "{sample:?}");
        drop(ends);
    });
}

/// A shell loop that takes some time.
const WORK: &str = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";

#[test]
#[expect(
    clippy::zombie_processes,
    reason = "reaped by wait4, which tells what it used"
)]
fn the_cpu_of_another_process_is_what_the_kernel_bills_for_it() {
    let mut child = Command::new("/bin/sh")
        .args(["-c", &format!("{WORK}; echo done; read x")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut sampler = ProcessSampler::only(&[child.id() as i32]);
    let before = sampler.sample();
    let mut done = [0; 5];
    child.stdout.take().unwrap().read_exact(&mut done).unwrap();
    let sample = sampler.sample();
    assert_eq!((sample.processes, sample.threads), (1, 1));
    assert!(sample.cpu_ns > before.cpu_ns);
    let sampled = sample.cpu_ns;
    child.kill().unwrap();
    // SAFETY: plain numbers, for which zero is valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let mut status = 0;
    // SAFETY: our own child, not reaped yet; both are writable.
    unsafe { libc::wait4(child.id() as i32, &mut status, 0, &mut usage) };
    let billed = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) as u64 * 1_000_000_000
        + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) as u64 * 1_000;
    assert!(
        billed > 0 && sampled.abs_diff(billed) < 5 * MS,
        "{sampled} against {billed}"
    );
    // It is gone: what it used is not forgotten.
    let after = sampler.sample();
    assert!(after.cpu_ns >= sampled && after.processes == 0);
    assert!(after.peak_rss_bytes > 100_000 && after.rss_bytes == 0);
}

/// A system that works in children which end before anybody can look at them.
#[test]
fn processes_that_have_ended_are_counted() {
    let text = format!(
        r#"
name = "worker"
driver = "mqtt"
[find]
executables = ["/bin/sh"]
[run]
command = ["{{exe}}", "-c", '''for n in 1 2 3; do sh -c '{WORK}'; done; times > {{dir}}/times; echo ready; read x; sleep 100''']
[ready]
stdout-line = "ready"
"#
    );
    let scratch = tempfile::tempdir().unwrap();
    let system = SystemFile::parse(&text, "worker.toml").unwrap();
    let running = Testbed::new()
        .unwrap()
        .start(&system, None, scratch.path())
        .unwrap();
    let sample = ProcessSampler::descendants_of(running.root_pid().unwrap()).sample();
    // Second line of `times`: user and system time of the children, as 0m0.123s.
    let times = std::fs::read_to_string(running.target.scratch.join("times")).unwrap();
    let seconds = |text: &str| {
        let (minutes, rest) = text.split_once('m').unwrap();
        minutes.parse::<f64>().unwrap() * 60.0 + rest.trim_end_matches('s').parse::<f64>().unwrap()
    };
    let children: f64 = times
        .lines()
        .nth(1)
        .unwrap()
        .split_whitespace()
        .map(seconds)
        .sum();
    let sampled = sample.cpu_ns as f64 / 1e9;
    assert!(children > 0.05, "{times}");
    // Children to a tick of 10 ms each, and the shell's own few milliseconds.
    assert!(
        (sampled - children).abs() < 0.05,
        "{sampled} against {children}"
    );
}

#[test]
fn a_broker_is_sampled_without_its_guard() {
    let scratch = tempfile::tempdir().unwrap();
    let mosquitto = Catalog::load(&[]).unwrap().get("mosquitto").unwrap();
    let running = Testbed::new()
        .unwrap()
        .start(&mosquitto, None, scratch.path())
        .unwrap();
    let mut sampler = ProcessSampler::descendants_of(running.root_pid().unwrap());
    let sample = sampler.sample();
    assert_eq!((sample.processes, sample.threads), (1, 1));
    assert!(sample.cpu_ns > 0 && sample.cpu_ns < 1000 * MS);
    assert!(sample.rss_bytes > 1 << 20 && sample.rss_bytes < 100 << 20);
    assert!(sample.peak_rss_bytes >= sample.rss_bytes);
    assert_eq!(sample.busiest.unwrap().pid, running.pid().unwrap());
    drop(running);
    let after = sampler.sample();
    assert!(after.processes == 0 && after.cpu_ns >= sample.cpu_ns);
}

/// A shell whose child writes 1 MiB to a file, as soon as it is told to.
#[test]
fn what_a_process_and_its_ended_children_write_to_disk_is_counted() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut shell = Command::new("sh")
        .args([
            "-c",
            "read go; head -c 1048576 /dev/zero > written; echo done; read go",
        ])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut sampler = ProcessSampler::only(&[shell.id() as i32]);
    let before = sampler.sample().written_bytes.unwrap();
    let mut input = shell.stdin.take().unwrap();
    input.write_all(b"go\n").unwrap();
    let mut said = [0; 5];
    shell
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut said)
        .unwrap();
    let written = sampler.sample().written_bytes.unwrap() - before;
    drop(input);
    shell.wait().unwrap();
    let expected = if lies_in_memory(folder.path()) {
        0..=0
    } else {
        // And what the file system notes of the file.
        1 << 20..=(1 << 20) + (256 << 10)
    };
    assert!(expected.contains(&written), "{written}");
}

#[test]
fn open_descriptors_are_counted() {
    let mut sampler = ProcessSampler::only(&[std::process::id() as i32]);
    assert_eq!(sampler.count_descriptors(), None, "nothing was sampled yet");
    sampler.sample();
    let before = sampler.count_descriptors().unwrap();
    let files: Vec<_> = (0..7)
        .map(|_| std::fs::File::open("/dev/null").unwrap())
        .collect();
    assert_eq!(sampler.count_descriptors(), Some(before + 7));
    drop(files);
    assert_eq!(sampler.count_descriptors(), Some(before));
}
