//! Counted system calls against a thread and a process that make known ones. Needs root.

use std::io::{Read, Write, pipe};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::time::Duration;

use pubgauge_testbed::{SyscallCounter, Syscalls, current_tid};

/// Calls that are made beside everything else in [`known`].
const KNOWN: Syscalls = Syscalls {
    all: 1000 + 1 + 4 + 5 + 1 + 2 + 3,
    sends: Some(6),
    receives: Some(3),
    syncs: 3,
};

/// Makes known system calls; those that sync fail, which the kernel finds out later. Safe between `fork` and
/// `exec`.
fn known() {
    let mut pair = [0; 2];
    let mut buffer = [0_u8; 100];
    let bytes: *mut libc::c_void = buffer.as_mut_ptr().cast();
    let part = libc::iovec {
        iov_base: bytes,
        iov_len: 10,
    };
    // SAFETY: all pointers are to what lives here; no file has the number -1.
    unsafe {
        for _ in 0..1000 {
            libc::syscall(libc::SYS_getppid);
        }
        libc::socketpair(libc::AF_UNIX, libc::SOCK_DGRAM, 0, pair.as_mut_ptr());
        // Three by a call each, and three by one.
        libc::send(pair[0], bytes, 10, 0);
        libc::write(pair[0], bytes, 10);
        libc::writev(pair[0], &raw const part, 1);
        let mut several: [libc::mmsghdr; 3] = std::mem::zeroed();
        for one in &mut several {
            one.msg_hdr.msg_iov = (&raw const part).cast_mut();
            one.msg_hdr.msg_iovlen = 1;
        }
        libc::sendmmsg(pair[0], several.as_mut_ptr(), 3, 0);
        // Calls that only look, that find nothing, or that are refused count among all alone.
        libc::recv(pair[1], bytes, 100, libc::MSG_PEEK);
        libc::recv(pair[1], bytes, 100, 0);
        libc::read(pair[1], bytes, 100);
        libc::readv(pair[1], &raw const part, 1);
        libc::recv(pair[0], bytes, 100, libc::MSG_DONTWAIT);
        libc::send(-1, bytes, 10, 0);
        libc::close(pair[0]);
        libc::close(pair[1]);
        libc::syscall(libc::SYS_fsync, -1);
        libc::syscall(libc::SYS_fdatasync, -1);
        libc::syscall(libc::SYS_sync_file_range, -1, 0, 0, 0);
    }
}

fn with_others(calls: Syscalls, others: u64) -> Syscalls {
    Syscalls {
        all: calls.all + others,
        ..calls
    }
}

/// Waits until a task sleeps in `read`, which is system call 0 on x86 and 63 on ARM.
fn sleeps_in_read(task: i32) {
    let read = format!("{} ", libc::SYS_read);
    let at = || std::fs::read_to_string(format!("/proc/{task}/syscall")).unwrap();
    while !at().starts_with(&read) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_threads_calls_are_counted_to_the_last_and_no_others() {
    let ((mut theirs, mut go), (mut done, mut done_there)) = (pipe().unwrap(), pipe().unwrap());
    let (tell, told) = channel();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            tell.send(current_tid()).unwrap();
            let mut byte = [0];
            while theirs.read(&mut byte).unwrap() == 1 {
                known();
                done_there.write_all(&byte).unwrap();
            }
        });
        // Another thread of the process makes calls all the time.
        scope.spawn(|| {
            while !over.load(Relaxed) {
                known();
            }
        });
        let thread = told.recv().unwrap();
        sleeps_in_read(thread);
        let mut counter = SyscallCounter::of_threads([thread]).unwrap();
        let mut before = counter.read().unwrap();
        for _ in 0..3 {
            go.write_all(&[1]).unwrap();
            done.read_exact(&mut [0]).unwrap();
            sleeps_in_read(thread);
            let now = counter.read().unwrap();
            // It wrote its answer, and reads again.
            assert_eq!(now - before, with_others(KNOWN, 2));
            before = now;
        }
        over.store(true, Relaxed);
        drop(go);
    });
}

#[test]
fn threads_that_begin_later_are_counted_too() {
    let (tell, told) = channel();
    let (go, gone) = channel::<()>();
    let thread = std::thread::spawn(move || {
        tell.send(current_tid()).unwrap();
        gone.recv().unwrap();
        let later = std::thread::spawn(|| std::thread::spawn(known).join().unwrap());
        later.join().unwrap();
    });
    let mut counter = SyscallCounter::of_threads([told.recv().unwrap()]).unwrap();
    let before = counter.read().unwrap();
    go.send(()).unwrap();
    thread.join().unwrap();
    let counted = counter.read().unwrap() - before;
    // To begin and to end a thread takes calls of its own, none of which are of these kinds.
    let kinds = |calls: Syscalls| (calls.sends, calls.receives, calls.syncs);
    assert_eq!(kinds(counted), kinds(KNOWN));
    assert!(counted.all > KNOWN.all, "{counted:?}");
}

#[test]
fn a_processes_calls_are_counted_with_those_of_its_children() {
    let ((mut theirs, mut go), (mut done, mut done_there)) = (pipe().unwrap(), pipe().unwrap());
    // SAFETY: the child only makes system calls, on pipes that it was born with.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let mut byte = [0];
        while theirs.read(&mut byte).is_ok() && byte[0] != 0 {
            if byte[0] == 2 {
                // SAFETY: as above; the grandchild ends at once.
                unsafe {
                    let grandchild = libc::fork();
                    if grandchild == 0 {
                        known();
                        libc::_exit(0);
                    }
                    libc::waitpid(grandchild, std::ptr::null_mut(), 0);
                }
            } else {
                known();
            }
            let _ = done_there.write_all(&byte);
        }
        // SAFETY: ends this process and nothing else.
        unsafe { libc::_exit(0) };
    }
    sleeps_in_read(child);
    let mut counter = SyscallCounter::of_processes(|| vec![child]).unwrap();
    let mut counted = |word: u8| {
        let before = counter.read().unwrap();
        go.write_all(&[word]).unwrap();
        done.read_exact(&mut [0]).unwrap();
        sleeps_in_read(child);
        counter.read().unwrap() - before
    };
    let own = counted(1);
    let with_grandchild = counted(2);
    go.write_all(&[0]).unwrap();
    // SAFETY: a child of this process.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    assert_eq!(own, with_others(KNOWN, 2));
    let kinds = |calls: Syscalls| (calls.sends, calls.receives, calls.syncs);
    assert_eq!(kinds(with_grandchild), kinds(KNOWN));
    // fork, wait, the grandchild's end, the answer, the next read; the C library may add some.
    assert!(with_grandchild.all >= KNOWN.all + 5, "{with_grandchild:?}");
}

#[test]
fn a_thread_that_is_gone_counts_nothing() {
    let gone = std::thread::spawn(current_tid).join().unwrap();
    let mut counter = SyscallCounter::of_threads([gone]).unwrap();
    let counted = counter.read().unwrap();
    let none = Syscalls {
        sends: Some(0),
        receives: Some(0),
        ..Syscalls::default()
    };
    assert_eq!(counted, none);
}
